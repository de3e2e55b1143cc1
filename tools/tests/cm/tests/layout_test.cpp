// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that the accessors of the communication manager's messages touch the bits that the
// specification gives them, and no others.
#include <cstring>

#include <gtest/gtest.h>

#include <ib/cm.hpp>

namespace
{

template<class Message>
const std::uint8_t *bytes_of(const Message &message)
{
	return reinterpret_cast<const std::uint8_t *>(&message);
}

TEST(CmLayout, cm_01_req_fields_have_the_specified_layout)
{
	ib::CmReq req{};
	req.set_remote_response_timeout(0x15);
	req.set_transport(ib::CmTransport::extended);
	req.set_flow_control(true);
	EXPECT_EQ(0x15 << 3 | 3 << 1 | 1, bytes_of(req)[43]);
	req.set_local_response_timeout(0x12);
	req.set_retry_count(5);
	EXPECT_EQ(0x12 << 3 | 5, bytes_of(req)[47]);
	req.set_path_mtu(4);
	req.set_rnr_retry_count(6);
	EXPECT_EQ(4 << 4 | 6, bytes_of(req)[50]);
	req.set_max_cm_retries(15);
	req.set_srq(true);
	req.set_extended_transport(1);
	EXPECT_EQ(15 << 4 | 1 << 3 | 1, bytes_of(req)[51]);
	EXPECT_EQ(0x15, req.remote_response_timeout());
	EXPECT_EQ(ib::CmTransport::extended, req.transport());
	EXPECT_TRUE(req.flow_control());
	EXPECT_EQ(0x12, req.local_response_timeout());
	EXPECT_EQ(5, req.retry_count());
	EXPECT_EQ(4, req.path_mtu());
	EXPECT_EQ(6, req.rnr_retry_count());
	EXPECT_EQ(15, req.max_cm_retries());
	EXPECT_TRUE(req.srq());
	EXPECT_EQ(1, req.extended_transport());

	// A value that does not fit into a field does not spill into the next.
	req.set_retry_count(0xff);
	EXPECT_EQ(0x12, req.local_response_timeout());
	req.set_transport(ib::CmTransport::rc);
	EXPECT_EQ(0x15 << 3 | 1, bytes_of(req)[43]);
}

TEST(CmLayout, cm_01_path_fields_have_the_specified_layout)
{
	ib::CmReq req{};
	EXPECT_FALSE(req.has_alternate());
	ib::CmPath &path = req.primary;
	path.local_lid = 0x1234;
	path.set_flow_label(0xabcde);
	path.set_rate(0x2a);
	path.set_sl(0xb);
	path.set_subnet_local(true);
	path.set_ack_timeout(0x13);
	const std::uint8_t *bytes = bytes_of(req);
	EXPECT_EQ(0x12, bytes[52]);
	EXPECT_EQ(0x34, bytes[53]);
	EXPECT_EQ(0xab, bytes[88]);
	EXPECT_EQ(0xcd, bytes[89]);
	EXPECT_EQ(0xe0, bytes[90]);
	EXPECT_EQ(0x2a, bytes[91]);
	EXPECT_EQ(0xb8, bytes[94]);
	EXPECT_EQ(0x13 << 3, bytes[95]);
	EXPECT_EQ(0xabcdeu, path.flow_label());
	EXPECT_EQ(0x2a, path.rate());
	EXPECT_EQ(0xb, path.sl());
	EXPECT_TRUE(path.subnet_local());
	EXPECT_EQ(0x13, path.ack_timeout());
	path.set_flow_label(0xfffff);
	path.set_rate(0);
	EXPECT_EQ(0xf0, bytes[90]);
	EXPECT_EQ(0, bytes[91]);
	req.alternate.local_lid = 7;
	EXPECT_TRUE(req.has_alternate());
	EXPECT_EQ(7, bytes[97]);
}

TEST(CmLayout, cm_01_mra_rej_rep_and_sidr_rep_fields_have_the_specified_layout)
{
	ib::CmMra mra{};
	mra.set_subject(ib::CmSubject::other);
	mra.set_service_timeout(0x18);
	EXPECT_EQ(0x80, bytes_of(mra)[8]);
	EXPECT_EQ(0xc0, bytes_of(mra)[9]);
	EXPECT_EQ(2, mra.subject());
	EXPECT_EQ(0x18, mra.service_timeout());

	ib::CmRej rej{};
	rej.set_subject(ib::CmSubject::rep);
	rej.set_info_length(72);
	EXPECT_EQ(0x40, bytes_of(rej)[8]);
	EXPECT_EQ(72 << 1, bytes_of(rej)[9]);
	EXPECT_EQ(72, rej.info_length());

	ib::CmRep rep{};
	rep.set_vendor_id(0x0a0b0c);
	rep.set_target_ack_delay(0x1f);
	rep.set_failover_accepted(2);
	rep.set_flow_control(true);
	rep.set_rnr_retry_count(7);
	rep.set_srq(true);
	EXPECT_EQ(0x0a, bytes_of(rep)[15]);
	EXPECT_EQ(0x0b, bytes_of(rep)[19]);
	EXPECT_EQ(0x0c, bytes_of(rep)[23]);
	EXPECT_EQ(0xfd, bytes_of(rep)[26]);
	EXPECT_EQ(0xf0, bytes_of(rep)[27]);
	EXPECT_EQ(0x0a0b0cu, rep.vendor_id());
	EXPECT_EQ(0x1f, rep.target_ack_delay());
	EXPECT_EQ(2, rep.failover_accepted());
	EXPECT_EQ(7, rep.rnr_retry_count());

	ib::CmSidrRep sidr{};
	sidr.set_vendor_id(0x010203);
	EXPECT_EQ(1, bytes_of(sidr)[6]);
	EXPECT_EQ(2, bytes_of(sidr)[7]);
	EXPECT_EQ(3, bytes_of(sidr)[11]);
	EXPECT_EQ(0x010203u, sidr.vendor_id());
}

TEST(CmLayout, cm_01_lap_alternate_path_has_the_specified_layout)
{
	ib::CmPath path{};
	path.local_lid = 1;
	path.remote_lid = 2;
	path.local_gid = ib::Gid::from_parts(3, 4);
	path.remote_gid = ib::Gid::from_parts(5, 6);
	path.set_flow_label(0x12345);
	path.set_rate(9);
	path.traffic_class = 10;
	path.hop_limit = 11;
	path.set_sl(12);
	path.set_subnet_local(true);
	path.set_ack_timeout(13);
	ib::CmLap lap{};
	lap.set_remote_response_timeout(0x11);
	lap.set_path(path);
	const std::uint8_t *bytes = bytes_of(lap);
	EXPECT_EQ(0x11 << 3, bytes[15]);
	EXPECT_EQ(0x12, bytes[56]);
	EXPECT_EQ(0x34, bytes[57]);
	EXPECT_EQ(0x50, bytes[58]);
	EXPECT_EQ(10, bytes[59]);
	EXPECT_EQ(11, bytes[60]);
	EXPECT_EQ(9, bytes[61]);
	EXPECT_EQ(0xc8, bytes[62]);
	EXPECT_EQ(13 << 3, bytes[63]);
	const ib::CmPath back = lap.path();
	EXPECT_EQ(0, std::memcmp(&back, &path, sizeof(path)));
}

} // namespace
