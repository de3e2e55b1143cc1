// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests directed routes (IBA 14.2.2) and rule MGMT-04 on nodes whose device responds to SMPs, and
// on nodes where one of weft's agents responds.
#include "../smi.hpp"
#include "smi_fixture.hpp"

using namespace smi_fixture;
using ib::SmiAction;
using ib::SmiDecision;
using mad::smi_inbound;
using mad::smi_outbound;
using mad::SmiNode;

namespace
{

constexpr SmiNode adapter{.is_switch = false, .port = 1, .port_count = 1};

SmiDecision through_switch(ib::Smp &packet, u8 in_port)
{
	return ib::smi_receive(packet, true, in_port, 8);
}

/* The hop pointer and the return path after each step, in both directions through one switch. */
void mgmt_04_smp_returns_along_the_directed_route(Test &test)
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

[[gnu::noinline]] SmiAction in(At node, u8 hop_ptr, u8 hop_cnt, bool returning = false,
			       u8 second_port = 1)
{
	ib::Smp packet = smp(hop_ptr, hop_cnt, returning);
	packet.initial_path[2] = second_port;
	return (node == At::adapter ? smi_inbound(packet, adapter, 1) : through_switch(packet, 1))
		.action;
}

[[gnu::noinline]] SmiAction out(u8 hop_ptr, u8 hop_cnt, bool returning = false, u8 first_port = 1)
{
	ib::Smp packet = smp(hop_ptr, hop_cnt, returning);
	packet.initial_path[1] = first_port;
	return smi_outbound(packet, adapter).action;
}

void mgmt_04_invalid_directed_routes_are_discarded(Test &test)
{
	EXPECT_EQ(in(At::fabric_switch, 1, 2), SmiAction::forward);
	EXPECT_EQ(in(At::fabric_switch, 1, 64), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 4, 2), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 0, 2), SmiAction::discard);
	EXPECT_EQ(in(At::fabric_switch, 1, 2, false, 9), SmiAction::discard);
	EXPECT_EQ(in(At::adapter, 1, 2), SmiAction::discard);
	/*
	 * After the last hop a route continues by LID, and so the SMP is delivered (C14-9 step 4).
	 * A response may begin in the same way (C14-13).
	 */
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
	/*
	 * Without hops, the hop pointer distinguishes a request of the node itself from one that
	 * arrived from the wire. The response goes back the same way.
	 */
	EXPECT_EQ(in(At::adapter, 0, 0), SmiAction::local);
	EXPECT_EQ(out(0, 0, true), SmiAction::local);
	EXPECT_EQ(out(1, 0, true), SmiAction::forward);
	EXPECT_EQ(out(1, 0), SmiAction::discard);
	EXPECT_EQ(out(2, 0, true), SmiAction::discard);
}

/*
 * A route that starts with a LID-routed part leaves its origin unchanged (IBA 14.2.2.1), even if it
 * has no hops. It becomes a directed route at the end of that part.
 */
void mgmt_04_directed_route_may_follow_a_lid_routed_part(Test &test)
{
	for (u8 hops : {0, 1, 2}) {
		ib::Smp packet = smp(0, hops);
		packet.dr_slid = 5;
		const ib::Smp before = packet;
		EXPECT_EQ(smi_outbound(packet, adapter).action, SmiAction::forward_by_lid);
		EXPECT_EQ(__builtin_memcmp(&packet, &before, sizeof(packet)), 0);
	}
	ib::Smp packet = smp(1, 2);
	packet.dr_slid = 5;
	EXPECT_EQ(smi_outbound(packet, adapter).action, SmiAction::discard);

	packet = smp(0, 1);
	packet.dr_slid = 5;
	packet.initial_path[1] = 4;
	EXPECT_EQ(smi_inbound(packet, adapter, 1).action, SmiAction::discard);
	const auto out = through_switch(packet, 3);
	EXPECT_EQ(out.action, SmiAction::forward);
	EXPECT_EQ(out.port, 4);
	EXPECT_EQ(smi_inbound(packet, adapter, 1).action, SmiAction::local);
	packet.header.status = ib::mad_status_direction;
	EXPECT_EQ(smi_outbound(packet, adapter).action, SmiAction::forward);
	const auto back = through_switch(packet, 4);
	EXPECT_EQ(back.action, SmiAction::forward_by_lid);
	EXPECT_EQ(back.lid, 5);
	EXPECT_EQ(smi_inbound(packet, adapter, 1).action, SmiAction::local);
}

/* The device replies to SMPs of its own node and to SMPs from the wire. */
void mgmt_04_device_replies_to_local_and_remote_smps(Test &test)
{
	Device near({.lid = 1, .process_mad = answer_in_device}),
		far({.lid = 2, .process_mad = answer_in_device});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	ask(test, near, {});
	ask(test, near, {.hops = 1});
}

void mgmt_04_registered_mad_agent_answers_smps_that_process_mad_does_not_answer(Test &test)
{
	Device near({.lid = 1}), far({.lid = 2});
	ASSERT_TRUE(near.ok() && far.ok());
	soft_connect(near, 1, far, 1);
	Manager there(far);
	ASSERT_FALSE(rdma::is_err(there.agent));
	ask(test, near, {.hops = 1});
}

/* Packets that a node sends from its QP0: their number, and the last one's path. */
struct Answers {
	ib_device *device;
	kern::Atomic<unsigned int> count{};
	ib::Smp last{};

	explicit Answers(ib_device *of) : device(of)
	{
		soft_watch(
			device,
			[](void *context, const void *payload, size_t length) {
				auto &self = *static_cast<Answers *>(context);
				if (length == sizeof(self.last))
					__builtin_memcpy(&self.last, payload, length);
				self.count.fetch_add(1);
				return false;
			},
			this);
	}
	~Answers() { soft_watch(device, nullptr, nullptr); }
	Answers(const Answers &) = delete;
	Answers &operator=(const Answers &) = delete;
};

/*
 * A request with zero hops belongs to its own node and is never sent (IBA 14.2.2.1). If one arrives
 * from the wire nevertheless, the response goes to the wire, whether the device, an agent of weft
 * or the MAD layer answers; on a switch, too.
 */
void mgmt_04_response_to_a_zero_hop_smp_from_the_wire_is_sent_to_the_wire(Test &test)
{
	struct {
		bool is_switch, device_answers, agent_answers;
	} constexpr rows[] = {{false, true, false},
			      {false, false, true},
			      {false, false, false},
			      {true, true, false},
			      {true, false, false}};
	for (const auto &row : rows) {
		Node near{1};
		Device far({.ports = row.is_switch ? 3u : 1u,
			    .is_switch = row.is_switch,
			    .lid = 2,
			    .process_mad = row.device_answers ? answer_in_device : nullptr});
		ASSERT_TRUE(near.ok() && far.ok());
		soft_connect(near.device(), 1, far, row.is_switch ? 2 : 1);
		kern::Owned<Manager> manager;
		if (row.agent_answers) {
			auto made = kern::make<Manager>(kern::Gfp::kernel, far.get());
			ASSERT_OK(made);
			manager = made.take();
		}
		Asked asked;
		Agent asker(near);
		asker.agent = ib_register_mad_agent(near.device(), 1, IB_QPT_SMI, nullptr, 0,
						    Asked::on_sent, Asked::on_received, &asked, 0);
		ASSERT_FALSE(rdma::is_err(asker.agent));
		auto made = kern::make<Raw>(kern::Gfp::kernel, asker, u16{IB_LID_PERMISSIVE_HOST});
		ASSERT_OK(made);
		Answers answers(far);
		auto &question = *reinterpret_cast<ib::Smp *>(made.value()->bytes);
		question = smp(0, 0);
		question.header.base_version = IB_MGMT_BASE_VERSION;
		question.header.mgmt_class = IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE;
		question.header.class_version = 1;
		question.header.method = IB_MGMT_METHOD_GET;
		question.header.tid = u64{asker.agent->hi_tid} << 32 | 5;
		ASSERT_TRUE(made.value()->send(IB_MGMT_MAD_SIZE));
		ASSERT_TRUE(eventually([&] { return answers.count.load_acquire() == 1; }));
		EXPECT_TRUE(answers.last.returning());
		EXPECT_EQ(answers.last.header.method, u8{IB_MGMT_METHOD_GET_RESP});
		EXPECT_EQ(answers.last.header.hop_ptr, 0);
		EXPECT_EQ(answers.last.header.hop_cnt, 0);
		/*
		 * The response arrives, and no agent takes it, because the request was not sent by
		 * the MAD layer.
		 */
		EXPECT_TRUE(eventually([&] { return dropped(near, IB_QPT_SMI).no_agent == 1; }));
	}
}

} // namespace

SOFT_SUITES(mad_smi, KUNIT_CASE(mgmt_04_smp_returns_along_the_directed_route),
	    KUNIT_CASE(mgmt_04_invalid_directed_routes_are_discarded),
	    KUNIT_CASE(mgmt_04_directed_route_may_follow_a_lid_routed_part),
	    KUNIT_CASE(mgmt_04_device_replies_to_local_and_remote_smps),
	    KUNIT_CASE(mgmt_04_registered_mad_agent_answers_smps_that_process_mad_does_not_answer),
	    KUNIT_CASE(mgmt_04_response_to_a_zero_hop_smp_from_the_wire_is_sent_to_the_wire));
