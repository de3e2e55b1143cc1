// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that valid CM messages from the network are accepted, and that messages are refused that
// violate a single rule. Each rule of each message is tested.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "core/cm/check.hpp"

namespace
{

using ib::cm_message;

/* Returns the smallest valid message. */
ib::Mad right(ib::CmAttribute attribute)
{
	ib::Mad mad{};
	mad.header.base_version = ib::mad_base_version;
	mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::com_mgt);
	mad.header.class_version = ib::cm_class_version;
	mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::send);
	mad.header.attr_id = static_cast<std::uint16_t>(attribute);
	auto &pair = cm_message<ib::CmPair>(mad);
	pair.local_id = 1;
	if (attribute == ib::CmAttribute::req) {
		auto &req = cm_message<ib::CmReq>(mad);
		req.qpn = 5;
		req.set_path_mtu(1);
	} else if (attribute != ib::CmAttribute::sidr_req &&
		   attribute != ib::CmAttribute::sidr_rep) {
		pair.remote_id = 2;
	}
	return mad;
}

TEST(CmCheck, cm_01_smallest_valid_message_of_each_type_is_accepted)
{
	for (unsigned attribute = 0; attribute <= 0x20; attribute++) {
		const auto known = attribute >= 0x10 && attribute < 0x10 + ib::cm_attribute_count;
		EXPECT_EQ(known ? cm::Fault::none : cm::Fault::not_ours,
			  cm::check(right(static_cast<ib::CmAttribute>(attribute))))
			<< attribute;
	}
}

TEST(CmCheck, cm_01_invalid_messages_are_refused)
{
	using Break = std::function<void(ib::Mad &)>;
	struct {
		ib::CmAttribute attribute;
		cm::Fault fault;
		Break wrong;
	} const cases[] = {
		{ib::CmAttribute::req, cm::Fault::not_ours,
		 [](ib::Mad &mad) { mad.header.base_version = 2; }},
		{ib::CmAttribute::req, cm::Fault::not_ours,
		 [](ib::Mad &mad) { mad.header.mgmt_class = 6; }},
		{ib::CmAttribute::req, cm::Fault::not_ours,
		 [](ib::Mad &mad) { mad.header.class_version = 1; }},
		{ib::CmAttribute::req, cm::Fault::not_ours,
		 [](ib::Mad &mad) { mad.header.method = 0x83; }},
		{ib::CmAttribute::req, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmReq>(mad).local_id = 0; }},
		{ib::CmAttribute::req, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmReq>(mad).qpn = 0; }},
		{ib::CmAttribute::req, cm::Fault::transport_type,
		 [](ib::Mad &mad) {
			 cm_message<ib::CmReq>(mad).set_transport(ib::CmTransport::rd);
		 }},
		{ib::CmAttribute::req, cm::Fault::transport_type,
		 [](ib::Mad &mad) {
			 cm_message<ib::CmReq>(mad).set_transport(ib::CmTransport::extended);
		 }},
		{ib::CmAttribute::req, cm::Fault::path_mtu,
		 [](ib::Mad &mad) { cm_message<ib::CmReq>(mad).set_path_mtu(0); }},
		{ib::CmAttribute::req, cm::Fault::path_mtu,
		 [](ib::Mad &mad) { cm_message<ib::CmReq>(mad).set_path_mtu(6); }},
		{ib::CmAttribute::mra, cm::Fault::malformed,
		 [](ib::Mad &mad) { mad.data[8] = 3 << 6; }},
		{ib::CmAttribute::mra, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmMra>(mad).remote_id = 0; }},
		{ib::CmAttribute::rej, cm::Fault::malformed,
		 [](ib::Mad &mad) { mad.data[8] = 3 << 6; }},
		{ib::CmAttribute::rej, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmRej>(mad).set_info_length(73); }},
		{ib::CmAttribute::rej, cm::Fault::malformed,
		 [](ib::Mad &mad) {
			 cm_message<ib::CmRej>(mad).local_id =
				 cm_message<ib::CmRej>(mad).remote_id = 0;
		 }},
		{ib::CmAttribute::rep, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmRep>(mad).local_id = 0; }},
		{ib::CmAttribute::rep, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmRep>(mad).remote_id = 0; }},
		{ib::CmAttribute::rep, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmRep>(mad).set_failover_accepted(3); }},
		{ib::CmAttribute::rtu, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmRtu>(mad).local_id = 0; }},
		{ib::CmAttribute::dreq, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmDreq>(mad).remote_id = 0; }},
		{ib::CmAttribute::drep, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmDrep>(mad).remote_id = 0; }},
		{ib::CmAttribute::lap, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmLap>(mad).local_id = 0; }},
		{ib::CmAttribute::apr, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmApr>(mad).info_length = 73; }},
		{ib::CmAttribute::sidr_req, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmSidrReq>(mad).request_id = 0; }},
		{ib::CmAttribute::sidr_rep, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmSidrRep>(mad).request_id = 0; }},
		{ib::CmAttribute::sidr_rep, cm::Fault::malformed,
		 [](ib::Mad &mad) { cm_message<ib::CmSidrRep>(mad).info_length = 73; }},
	};
	for (const auto &one : cases) {
		ib::Mad mad = right(one.attribute);
		one.wrong(mad);
		EXPECT_EQ(one.fault, cm::check(mad)) << "case " << &one - cases;
	}
}

TEST(CmCheck, cm_01_boundary_values_are_accepted)
{
	ib::Mad rej = right(ib::CmAttribute::rej), xrc = right(ib::CmAttribute::req),
		apr = right(ib::CmAttribute::apr);
	cm_message<ib::CmRej>(rej).set_info_length(72);
	EXPECT_EQ(cm::Fault::none, cm::check(rej));
	// Before it has responded to a REQ, the receiver has no ID to send.
	cm_message<ib::CmRej>(rej).local_id = 0;
	EXPECT_EQ(cm::Fault::none, cm::check(rej));
	cm_message<ib::CmReq>(xrc).set_transport(ib::CmTransport::extended);
	cm_message<ib::CmReq>(xrc).set_extended_transport(ib::cm_extended_xrc);
	cm_message<ib::CmReq>(xrc).set_path_mtu(5);
	EXPECT_EQ(cm::Fault::none, cm::check(xrc));
	cm_message<ib::CmApr>(apr).info_length = 72;
	EXPECT_EQ(cm::Fault::none, cm::check(apr));
}

} // namespace
