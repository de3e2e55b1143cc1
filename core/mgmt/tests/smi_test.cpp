// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Directed routes (IBA 14.2.2), and MGMT-04: nodes whose device answers SMPs, and nodes where an agent of ours does.
#include "../smi.hpp"
#include "smi_fixture.hpp"

using namespace smi_fixture;
using ib::SmiAction;
using ib::SmiDecision;
using mgmt::smi_inbound;
using mgmt::smi_outbound;
using mgmt::SmiNode;

namespace
{

constexpr SmiNode adapter{.is_switch = false, .port = 1, .port_count = 1};

SmiDecision through_switch(ib::Smp &packet, u8 in_port)
{
	return ib::smi_receive(packet, true, in_port, 8);
}

/* There and back over one switch: the hop pointer and the return path after each step. */
void mgmt_04_directed_route_there_and_back(Test &test)
{
	ib::Smp packet = smp(0, 2);
	packet.initial_path[2] = 5;
	EXPECT_EQ(smi_outbound(packet, adapter).action, SmiAction::forward);
	EXPECT_EQ(packet.header.hop_ptr, 1);
	const auto through = through_switch(packet, 3);
	EXPECT_EQ(through.action, SmiAction::forward);
	EXPECT_EQ(through.port, 5);
	EXPECT_EQ(packet.return_path[1], 3);
	EXPECT_EQ(smi_inbound(packet, adapter, 1).action, SmiAction::local);
	EXPECT_EQ(packet.header.hop_ptr, 3);

	packet.header.status = ib::mad_status_direction;
	EXPECT_EQ(smi_outbound(packet, adapter).action, SmiAction::forward);
	EXPECT_EQ(packet.header.hop_ptr, 2);
	const auto back = through_switch(packet, 5);
	EXPECT_EQ(back.action, SmiAction::forward);
	EXPECT_EQ(back.port, 3);
	EXPECT_EQ(smi_inbound(packet, adapter, 1).action, SmiAction::local);
	EXPECT_EQ(packet.header.hop_ptr, 0);
}

enum class At : u8 { adapter, fabric_switch };

[[gnu::noinline]] SmiAction in(At node, u8 hop_ptr, u8 hop_cnt, bool returning = false, u8 second_port = 1)
{
	ib::Smp packet = smp(hop_ptr, hop_cnt, returning);
	packet.initial_path[2] = second_port;
	return (node == At::adapter ? smi_inbound(packet, adapter, 1) : through_switch(packet, 1)).action;
}

[[gnu::noinline]] SmiAction out(u8 hop_ptr, u8 hop_cnt, bool returning = false, u8 first_port = 1)
{
	ib::Smp packet = smp(hop_ptr, hop_cnt, returning);
	packet.initial_path[1] = first_port;
	return smi_outbound(packet, adapter).action;
}

void mgmt_04_directed_route_violations(Test &test)
{
	EXPECT_EQ(in(At::fabric_switch, 1, 2), SmiAction::forward);
	EXPECT_EQ(in(At::fabric_switch, 1, 64), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 4, 2), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 0, 2), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 1, 2, false, 9), SmiAction::discard);
	EXPECT_EQ(in(At::adapter, 1, 2), SmiAction::discard);
	/* Behind its end a path goes on by LID, and so arrives (C14-9 step 4); a way back begins so too (C14-13). */
	EXPECT_EQ(in(At::adapter, 3, 2), SmiAction::local);
	EXPECT_EQ(in(At::fabric_switch, 3, 2, true), SmiAction::forward);
	EXPECT_EQ(in(At::adapter, 3, 2, true), SmiAction::discard);
	EXPECT_EQ(in(At::adapter, 2, 2, true), SmiAction::discard);
	EXPECT_EQ(out(0, 1), SmiAction::forward);
	EXPECT_EQ(out(0, 0), SmiAction::local);
	EXPECT_EQ(out(1, 2), SmiAction::discard);
	EXPECT_EQ(out(1, 2, true), SmiAction::discard);
	EXPECT_EQ(out(0, 255), SmiAction::discard);
	EXPECT_EQ(out(0, 1, false, 2), SmiAction::discard);
}

/* The device answers: itself for itself, and over the wire. */
void mgmt_04_device_answers(Test &test)
{
	Device near({.lid = 1, .process_mad = answer_in_device}), far({.lid = 2, .process_mad = answer_in_device});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	ask(test, near, {});
	ask(test, near, {.hops = 1});
}

void mgmt_04_agent_answers(Test &test)
{
	Device near({.lid = 1}), far({.lid = 2});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	Manager there(far);
	ASSERT_FALSE(rdma::is_err(there.agent));
	ask(test, near, {.hops = 1});
}

} // namespace

KUNIT_SUITE(mad_smi, KUNIT_CASE(mgmt_04_directed_route_there_and_back), KUNIT_CASE(mgmt_04_directed_route_violations),
	    KUNIT_CASE(mgmt_04_device_answers), KUNIT_CASE(mgmt_04_agent_answers));
