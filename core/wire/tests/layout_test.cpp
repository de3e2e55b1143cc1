// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that accessors of the wire structures use exactly the bits that the specification defines.
#include <cstring>

#include <gtest/gtest.h>

#include <ib/packet.hpp>
#include <ib/pma.hpp>
#include <ib/sa.hpp>

namespace
{

template<class Structure>
Structure from_bytes(std::initializer_list<int> bytes)
{
	Structure result{};
	std::size_t at = 0;
	for (int byte : bytes)
		reinterpret_cast<std::uint8_t *>(&result)[at++] = static_cast<std::uint8_t>(byte);
	return result;
}

TEST(WireLayout, lrh_fields_match_the_specification)
{
	auto lrh = from_bytes<ib::Lrh>({0xf0, 0x52, 0x12, 0x34, 0xf8, 0x48, 0x56, 0x78});
	EXPECT_EQ(15, lrh.vl());
	EXPECT_EQ(5, lrh.sl());
	EXPECT_EQ(ib::Lnh::local, lrh.lnh());
	EXPECT_EQ(0x1234, lrh.dlid);
	EXPECT_EQ(0x48, lrh.length());
	EXPECT_EQ(0x5678, lrh.slid);
	lrh.set_length(0x7ff);
	EXPECT_EQ(0x7ff, lrh.length());
	// Reserved bits must not change, because the ICRC covers them.
	EXPECT_EQ(0xffff, lrh.length_word);
}

TEST(WireLayout, bth_fields_match_the_specification)
{
	auto bth = from_bytes<ib::Bth>(
		{0x64, 0xd0, 0xff, 0xff, 0xc0, 0x01, 0x02, 0x03, 0x80, 0x0a, 0x0b, 0x0c});
	EXPECT_TRUE(bth.solicited());
	EXPECT_TRUE(bth.migrated());
	EXPECT_EQ(1, bth.pad());
	EXPECT_TRUE(bth.fecn());
	EXPECT_TRUE(bth.becn());
	EXPECT_EQ(0x010203u, bth.dest_qp());
	EXPECT_TRUE(bth.ack_request());
	EXPECT_EQ(0x0a0b0cu, bth.psn());
	bth.set_psn(0xffffffff);
	EXPECT_EQ(0xffffffu, bth.psn());
	EXPECT_TRUE(bth.ack_request());
	bth.set_ack_request(false);
	EXPECT_EQ(0xffffffu, bth.psn_word);
}

TEST(WireLayout, port_info_fields_match_the_specification)
{
	ib::PortInfo info{};
	info.set_state(ib::PortState::active);
	info.set_speed_supported(7);
	info.set_phys_state(ib::PhysState::link_up);
	info.set_down_default(2);
	info.set_neighbor_mtu(ib::Mtu::mtu_4096);
	info.set_sm_sl(3);
	info.set_lmc(2);
	info.set_client_reregister(true);
	info.set_subnet_timeout(18);
	info.set_operational_vls(4);
	const auto *bytes = reinterpret_cast<const std::uint8_t *>(&info);
	EXPECT_EQ(0x74, bytes[32]);
	EXPECT_EQ(0x52, bytes[33]);
	EXPECT_EQ(0x02, bytes[34]);
	EXPECT_EQ(0x53, bytes[36]);
	EXPECT_EQ(0x40, bytes[43]);
	EXPECT_EQ(0x92, bytes[51]);
	EXPECT_EQ(ib::Mtu::mtu_4096, info.neighbor_mtu());
}

TEST(WireLayout, mc_member_record_fields_match_the_specification)
{
	ib::McMemberRecord record{};
	record.set_sl_flow_hop(5, 0x12345, 7);
	record.set_scope_join_state(2, 1);
	EXPECT_EQ(0x51234507u, record.sl_flow_hop);
	EXPECT_EQ(5, record.sl());
	EXPECT_EQ(0x12345u, record.flow_label());
	EXPECT_EQ(7, record.hop_limit());
	EXPECT_EQ(0x21, record.scope_join_state);
}

TEST(WireLayout, mtu_and_rate_encodings_are_converted_as_specified)
{
	EXPECT_EQ(256u, ib::mtu_bytes(ib::Mtu::mtu_256));
	EXPECT_EQ(4096u, ib::mtu_bytes(ib::Mtu::mtu_4096));
	EXPECT_EQ(ib::Mtu::mtu_2048, ib::mtu_from_bytes(2048));
	EXPECT_EQ(ib::Mtu::mtu_1024, ib::mtu_from_bytes(2047));
	EXPECT_EQ(ib::Mtu::mtu_4096, ib::mtu_from_bytes(100000));
	EXPECT_EQ(ib::Rate::gbps_40, ib::link_rate(ib::width_4x, ib::speed_qdr));
	EXPECT_EQ(ib::Rate::gbps_10, ib::link_rate(ib::width_4x, ib::speed_sdr));
	EXPECT_EQ(ib::Rate::gbps_56, ib::link_rate(ib::width_4x, ib::speed_qdr, ib::speed_fdr));
	EXPECT_EQ(ib::Rate::gbps_100, ib::link_rate(ib::width_4x, ib::speed_qdr, ib::speed_edr));
}

TEST(WireLayout, pkeys_match_only_if_bases_are_equal_and_nonzero_and_one_is_a_full_member)
{
	EXPECT_TRUE(ib::pkey_match(0xffff, 0x7fff));
	EXPECT_FALSE(ib::pkey_match(0x7fff, 0x7fff));
	EXPECT_FALSE(ib::pkey_match(0x8001, 0x8002));
	EXPECT_FALSE(ib::pkey_match(0x8000, 0x8000));
}

} // namespace
