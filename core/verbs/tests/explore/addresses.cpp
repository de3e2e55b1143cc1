// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests rule LOCK-04 under many thread interleavings (weft-explore(1)): one task changes an address
// handle while another sends to it.
#include <kern/thread.hpp>
#include "../fixture.hpp"

using namespace fixture;

namespace
{

constexpr u32 qkey = 0x1234;

/* Both addresses lead to the same port. The second one has a GRH and another service level. */
rdma_ah_attr address_of(bool second)
{
	rdma_ah_attr attr{};
	attr.port_num = 1;
	attr.sl = second ? 2 : 1;
	rdma_ah_set_dlid(&attr, 1);
	if (second) {
		const ib_gid gid{};
		rdma_ah_set_grh(&attr, const_cast<ib_gid *>(&gid), 0, 0, 1, 0);
	}
	return attr;
}

struct Changer {
	int run()
	{
		for (unsigned int i = 1; i <= 8; i++) {
			rdma_ah_attr attr = address_of(i % 2);
			error |= rdma_modify_ah(ah, &attr);
		}
		return 0;
	}
	ib_ah *ah;
	int error = 0;
};

/* Each datagram that arrives was sent to one address or the other, whole. */
void sent_to_a_whole_address(Test &test, soft_behaviour behaviour)
{
	Device device({.context = SOFT_TASK, .behaviour = behaviour, .lid = 1});
	ASSERT_TRUE(device.ok());
	auto pd = rdma::Pd::create(device);
	auto cq = rdma::CompletionQueue::create(device, nullptr, nullptr, 16);
	ASSERT_OK(pd);
	ASSERT_OK(cq);
	auto attr = qp_attr(IB_QPT_UD);
	auto qp = rdma::QueuePair::create(pd.value(), cq.value(), cq.value(), attr);
	ASSERT_OK(qp);
	ASSERT_EQ(connect_datagram(qp.value().get(), qkey), 0);
	Memory memory(pd.value());
	ASSERT_TRUE(memory.ok);
	rdma_ah_attr first = address_of(false);
	Changer changer{rdma_create_ah(pd.value()->get(), &first, 0)};
	ASSERT_FALSE(rdma::is_err(changer.ah));
	auto thread = kern::Thread::create("changer", kern::method<&Changer::run>, &changer);
	ASSERT_OK(thread);
	constexpr unsigned int count = 6;
	for (unsigned int i = 0; i < count; i++) {
		auto to = sge_of(pd.value(), memory.at(100), 48);
		auto from = sge_of(pd.value(), memory.at(0), 8);
		ib_recv_wr receive{};
		receive.sg_list = &to;
		receive.num_sge = 1;
		ib_ud_wr send{};
		send.wr = send_wr(&from, IB_WR_SEND);
		send.ah = changer.ah;
		send.remote_qpn = qp.value().number();
		send.remote_qkey = qkey;
		ASSERT_EQ(ib_post_recv(qp.value().get(), &receive, nullptr), 0);
		ASSERT_EQ(ib_post_send(qp.value().get(), &send.wr, nullptr), 0);
	}
	for (unsigned int i = 0; i < 2 * count; i++) {
		ib_wc wc;
		ASSERT_TRUE(next(cq.value(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
		if (wc.opcode & IB_WC_RECV)
			EXPECT_EQ(wc.sl, wc.wc_flags & IB_WC_GRH ? 2u : 1u);
	}
	// A thread that has not started does not run.
	(void)thread.value().stop();
	EXPECT_EQ(changer.error, 0);
	rdma_destroy_ah(changer.ah, 0);
}

void lock_04_datagram_sent_during_modify_ah_uses_the_old_or_the_new_address(Test &test)
{
	sent_to_a_whole_address(test, SOFT_PLAIN);
}
/* The same on a device that reads the address when it sends. */
void lock_04_card_that_reads_the_ah_during_modify_ah_sends_to_the_old_or_the_new_address(Test &test)
{
	sent_to_a_whole_address(test, SOFT_CARD_SENDS_FIRST);
}

} // namespace

KUNIT_SUITE(
	explore_addresses,
	KUNIT_CASE(lock_04_datagram_sent_during_modify_ah_uses_the_old_or_the_new_address),
	KUNIT_CASE(
		lock_04_card_that_reads_the_ah_during_modify_ah_sends_to_the_old_or_the_new_address));
