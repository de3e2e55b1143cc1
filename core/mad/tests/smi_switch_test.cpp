// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule MGMT-04 on a switch (IBA 14.2.2): SMPs are forwarded through the right port in both
// directions, SMPs to the switch itself are answered, and invalid SMPs are counted and dropped.
#include "smi_fixture.hpp"

using namespace smi_fixture;

namespace
{

/* near - 1 switch 2 - 1 switch 3 - far */
struct Line {
	Device near, first, second, far;

	explicit Line(decltype(soft_options::process_mad) agent)
	    : near({.lid = 1, .process_mad = agent}),
	      first({.ports = 3, .is_switch = true, .lid = 2, .process_mad = agent}),
	      second({.ports = 3, .is_switch = true, .lid = 3, .process_mad = agent}),
	      far({.lid = 4, .process_mad = agent})
	{
		if (!ok())
			return;
		soft_connect(near, 1, first, 1);
		soft_connect(first, 2, second, 1);
		soft_connect(second, 3, far, 1);
	}
	bool ok() const { return near.ok() && first.ok() && second.ok() && far.ok(); }
	u64 misrouted(ib_device *device) const
	{
		ib_mad_counters counters{};
		(void)ib_query_mad_counters(device, 0, IB_QPT_SMI, &counters);
		return counters.misrouted;
	}
};

void mgmt_04_switch_forwards_directed_route_smps(Test &test)
{
	Line line(answer_in_device);
	ASSERT_TRUE(line.ok());
	ask(test, line.near, {.hops = 2, .ports = {1, 2}});
	ask(test, line.near, {.hops = 3, .ports = {1, 2, 3}});
	/* No packet bypassed the rules, and the switches sent no requests. */
	EXPECT_EQ(line.misrouted(line.first), 0u);
	EXPECT_EQ(line.misrouted(line.second), 0u);
}

/* The input port that is passed to the switch's own agent. */
kern::Atomic<u32> asked_by{};

int note_port(ib_device *device, int flags, u32 port_num, const ib_wc *wc, const ib_grh *grh,
	      const ib_mad *in, ib_mad *out, size_t *size, u16 *pkey_index)
{
	if (device->is_switch && in->mad_hdr.method == IB_MGMT_METHOD_GET)
		asked_by.store_release(port_num);
	return answer_in_device(device, flags, port_num, wc, grh, in, out, size, pkey_index);
}

void mgmt_04_process_mad_of_a_switch_gets_the_ingress_port(Test &test)
{
	Line line(note_port);
	ASSERT_TRUE(line.ok());
	ask(test, line.near, {.hops = 1});
	EXPECT_EQ(asked_by.load_acquire(), 1u);
	ask(test, line.far, {.hops = 1});
	EXPECT_EQ(asked_by.load_acquire(), 3u);
	ask(test, line.far, {.hops = 2, .ports = {1, 1}});
	EXPECT_EQ(asked_by.load_acquire(), 2u);
}

/* An agent of weft replies for a switch whose device has none. */
void mgmt_04_mad_agent_registered_on_switch_port_0_answers_smps_if_process_mad_is_missing(
	Test &test)
{
	Line line(nullptr);
	ASSERT_TRUE(line.ok());
	Manager of_switch(line.second, 0);
	ASSERT_FALSE(rdma::is_err(of_switch.agent));
	ask(test, line.near, {.hops = 2, .ports = {1, 2}});
}

/* A manager on the switch sends requests to the switch itself and through each of its ports. */
void mgmt_04_smps_sent_by_an_sm_on_a_switch_reach_the_switch_and_nodes_behind_its_ports(Test &test)
{
	Line line(answer_in_device);
	ASSERT_TRUE(line.ok());
	ask(test, line.first, {.from_port = 0});
	ask(test, line.first, {.hops = 1, .ports = {1}, .from_port = 0});
	ask(test, line.first, {.hops = 2, .ports = {2, 3}, .from_port = 0});
}

/*
 * At the end of the directed part, a switch forwards by LID. The response reaches it by LID, and
 * returns along the directed route.
 */
void mgmt_04_switch_forwards_smps_by_lid_after_the_directed_part(Test &test)
{
	Line line(answer_in_device);
	ASSERT_TRUE(line.ok());
	ask(test, line.near, {.hops = 1, .by_lid = 4});
	ask(test, line.near, {.hops = 2, .ports = {1, 2}, .by_lid = 4});
}

/*
 * A route that starts with a LID-routed part continues or ends at the node with that LID, not at
 * the requester. The same holds for the response.
 */
void mgmt_04_switch_accepts_routes_that_start_with_a_lid_routed_part(Test &test)
{
	Line line(note_port);
	ASSERT_TRUE(line.ok());
	ask(test, line.near, {.begins_at = 2, .asker = 1});
	EXPECT_EQ(asked_by.exchange(0), 1u);
	ask(test, line.near, {.hops = 1, .ports = {2}, .begins_at = 2, .asker = 1});
	EXPECT_EQ(asked_by.exchange(0), 1u);
	ask(test, line.near, {.hops = 1, .ports = {1}, .begins_at = 3, .asker = 1});
	EXPECT_EQ(asked_by.exchange(0), 2u);
	ask(test, line.near, {.hops = 2, .ports = {2, 3}, .begins_at = 2, .asker = 1});
	ask(test, line.near, {.begins_at = 4, .asker = 1});
	EXPECT_EQ(asked_by.exchange(0), 0u);
	/* Through a port that the switch does not have. */
	ask(test, line.near,
	    {.hops = 1,
	     .ports = {4},
	     .begins_at = 2,
	     .asker = 1,
	     .expected = IB_WC_RESP_TIMEOUT_ERR});
	EXPECT_EQ(line.misrouted(line.first), 1u);
}

void mgmt_04_switch_drops_and_counts_smps_with_invalid_routes(Test &test)
{
	Line line(answer_in_device);
	ASSERT_TRUE(line.ok());
	/*
	 * The next port is in turn one that the switch does not have, its port 0, and followed by
	 * an invalid LID.
	 */
	ask(test, line.near, {.hops = 2, .ports = {1, 4}, .expected = IB_WC_RESP_TIMEOUT_ERR});
	EXPECT_EQ(line.misrouted(line.first), 1u);
	ask(test, line.near, {.hops = 2, .ports = {1, 0}, .expected = IB_WC_RESP_TIMEOUT_ERR});
	EXPECT_EQ(line.misrouted(line.first), 2u);
	ask(test, line.near, {.hops = 1, .by_lid = 0, .expected = IB_WC_RESP_TIMEOUT_ERR});
	EXPECT_EQ(line.misrouted(line.first), 3u);
	/* The port has no cable: the SMP is forwarded and lost. */
	ask(test, line.near, {.hops = 2, .ports = {1, 3}, .expected = IB_WC_RESP_TIMEOUT_ERR});
	EXPECT_EQ(line.misrouted(line.first), 3u);
}

/*
 * An SMP that cannot be forwarded for lack of memory is dropped and counted. The next one is
 * forwarded.
 */
void mgmt_04_switch_drops_forwarded_smps_when_out_of_memory(Test &test)
{
	Line line(answer_in_device);
	ASSERT_TRUE(line.ok());
	soft_fail(line.first, SOFT_CREATE_AH, 1, -ENOMEM);
	ask(test, line.near, {.hops = 2, .ports = {1, 2}, .expected = IB_WC_RESP_TIMEOUT_ERR});
	ib_mad_counters counters{};
	EXPECT_EQ(ib_query_mad_counters(line.first, 0, IB_QPT_SMI, &counters), 0);
	EXPECT_EQ(counters.no_memory, 1u);
	ask(test, line.near, {.hops = 2, .ports = {1, 2}});
}

} // namespace

SOFT_SUITES(
	mad_smi_switch, KUNIT_CASE(mgmt_04_switch_forwards_directed_route_smps),
	KUNIT_CASE(mgmt_04_process_mad_of_a_switch_gets_the_ingress_port),
	KUNIT_CASE(
		mgmt_04_mad_agent_registered_on_switch_port_0_answers_smps_if_process_mad_is_missing),
	KUNIT_CASE(
		mgmt_04_smps_sent_by_an_sm_on_a_switch_reach_the_switch_and_nodes_behind_its_ports),
	KUNIT_CASE(mgmt_04_switch_forwards_smps_by_lid_after_the_directed_part),
	KUNIT_CASE(mgmt_04_switch_accepts_routes_that_start_with_a_lid_routed_part),
	KUNIT_CASE(mgmt_04_switch_drops_and_counts_smps_with_invalid_routes),
	KUNIT_CASE(mgmt_04_switch_drops_forwarded_smps_when_out_of_memory));
