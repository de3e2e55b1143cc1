// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the test cases that the drivers of all ICM-era cards (mlx4 and mthca) must pass. The
// driver and the emulated card run in one process and on one virtual clock (weft-explore(1)). A
// file must define `explored_card` before it includes this header, and contain a suite of
// EXPLORED_CASES.
#pragma once
#include <kern/abi/explore.h>
#include <kern/completion.hpp>
#include <kern/dma.hpp>
#include <kern/irq_work.hpp>
#include <kern/thread.hpp>
#include "../../../../core/verbs/tests/fixture.hpp"

using kern::kunit::eventually;
using kern::kunit::Test;

namespace
{

/* The device that the driver has registered, while it exists. */
class Device
{
public:
	/* @failing selects the tasks whose allocations fail while the card is probed. */
	explicit Device(kern_explore_failing failing = KERN_EXPLORE_NONE)
	{
		(void)ib_register_client(&client);
		kern_explore_failures(failing);
		kern_explore_plug_card(explored_card);
		kern_explore_failures(KERN_EXPLORE_NONE);
	}
	~Device()
	{
		pull();
		ib_unregister_client(&client);
	}
	Device(const Device &) = delete;
	Device &operator=(const Device &) = delete;

	ib_device *get() const { return found; }
	void pull()
	{
		if (std::exchange(there_, false))
			kern_explore_pull_card();
	}
	/* Returns the port's LID once the subnet manager has configured it, and 0 before. */
	u16 lid() const
	{
		ib_port_attr attr{};
		(void)eventually([&] {
			return ib_query_port(found, 1, &attr) == 0 && attr.state == IB_PORT_ACTIVE;
		});
		return static_cast<u16>(attr.state == IB_PORT_ACTIVE ? attr.lid : 0);
	}

private:
	static int add(ib_device *device)
	{
		found = device;
		return 0;
	}
	static void remove(ib_device *, void *) { found = nullptr; }

	static inline constinit ib_device *found = nullptr;
	static inline constinit ib_client client{"explored", add, remove, nullptr};
	bool there_ = true;
};

/* Probing and removing a card leaks nothing. */
void card_removal_frees_all_resources(Test &test)
{
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	device.pull();
	EXPECT_TRUE(device.get() == nullptr);
}

/*
 * Whatever step of the probe fails, everything is undone. When the card is plugged in again, it is
 * registered.
 */
void failed_probe_frees_all_resources(Test &test)
{
	Device(KERN_EXPLORE_THIS_TASK).pull();
	Device device;
	EXPECT_TRUE(device.get() != nullptr);
}

/* A QP that is connected to itself, and receives what it sends. */
class Round
{
public:
	static constexpr u32 bytes = 64;

	/* If @apart, receives complete in a separate CQ. */
	explicit Round(const Device &device, bool apart = false)
	{
		auto pd = rdma::Pd::create(device.get());
		auto cq = rdma::CompletionQueue::create(device.get(), wake, &woken_, 16);
		auto memory = kern::DmaBuffer::create(device.get()->dma_device, kern::page_size);
		if (!pd.ok() || !cq.ok() || !memory.ok())
			return;
		pd_ = pd.take();
		cq_ = cq.take();
		memory_ = memory.take();
		auto attr = fixture::qp_attr(IB_QPT_RC);
		sent_ = cq_;
		if (apart) {
			auto sent =
				rdma::CompletionQueue::create(device.get(), ignore, nullptr, 16);
			if (!sent.ok())
				return;
			sent_ = sent.take();
		}
		auto qp = rdma::QueuePair::create(pd_, sent_, cq_, attr);
		if (!qp.ok())
			return;
		qp_ = qp.take();
		ok_ = fixture::connect(qp_.get(), qp_.number(), device.lid()) == 0;
		for (u32 i = 0; i < bytes; i++)
			memory_.as<u8>()[i] = static_cast<u8>(i);
	}
	bool ok() const { return ok_; }

	/* Posts one receive and one send, both with this number. */
	bool post(u64 number = 0)
	{
		ib_sge to{memory_.address() + kern::page_size / 2, bytes, pd_->local_dma_lkey()};
		ib_sge from{memory_.address(), bytes, pd_->local_dma_lkey()};
		ib_recv_wr receive{};
		receive.sg_list = &to;
		receive.num_sge = 1;
		receive.wr_id = number;
		auto send = fixture::send_wr(&from, IB_WR_SEND, number);
		return ib_post_recv(qp_.get(), &receive, nullptr) == 0 &&
		       ib_post_send(qp_.get(), &send, nullptr) == 0;
	}
	bool arrived() const
	{
		const u8 *sent = memory_.as<u8>();
		return __builtin_memcmp(sent, sent + kern::page_size / 2, bytes) == 0;
	}
	/* Takes @count completions. Sleeps between events, for at most a minute each. */
	bool sleep_until_complete(unsigned count)
	{
		for (;;) {
			ib_wc wc;
			for (; count && cq_->poll(1, &wc) == 1; count--)
				if (wc.status != IB_WC_SUCCESS)
					return false;
			if (!count)
				return true;
			if (cq_->request_notification(IB_CQ_NEXT_COMP) || !woken_.wait_for(60'000))
				return false;
		}
	}
	/* Arms the CQ without checking for completions, and waits for the event. */
	bool wakes()
	{
		return cq_->request_notification(IB_CQ_NEXT_COMP) == 0 && woken_.wait_for(60'000);
	}
	/* Arms the CQ, and either waits for the event or is asked to poll. */
	bool wakes_or_is_reported()
	{
		const int missed =
			cq_->request_notification(IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		return missed > 0 || (missed == 0 && woken_.wait_for(60'000));
	}
	const fixture::CqRef &cq() const { return cq_; }
	const fixture::CqRef &sent() const { return sent_; }

private:
	static void ignore(ib_cq *, void *) {}
	static void wake(ib_cq *, void *woken)
	{
		static_cast<kern::Completion *>(woken)->complete();
	}

	kern::Completion woken_;
	kern::DmaBuffer memory_;
	fixture::PdRef pd_;
	fixture::CqRef cq_, sent_;
	rdma::QueuePair qp_;
	bool ok_ = false;
};

/* A message passes from the driver through the card and its loopback link back to the driver. */
void qp_connected_to_itself_receives_its_message(Test &test)
{
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device);
	ASSERT_TRUE(round.ok());
	ASSERT_TRUE(round->post());
	for (unsigned i = 0; i < 2; i++) {
		ib_wc wc;
		ASSERT_TRUE(fixture::next(round->cq(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	}
	EXPECT_TRUE(round->arrived());
}

/* A completion before or after the CQ is armed wakes the waiting task. */
void completion_before_or_after_the_cq_is_armed_wakes_the_waiting_task(Test &test)
{
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device);
	ASSERT_TRUE(round.ok());
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_TRUE(round->post());
		EXPECT_TRUE(round->sleep_until_complete(2));
	}
	EXPECT_TRUE(round->arrived());
}

/*
 * If the CQ is armed after a single completion that has not been polled, and no other completion
 * follows, the card raises the event (NOTIFY-06).
 */
void cq_armed_after_an_unpolled_completion_raises_an_event(Test &test)
{
	constexpr unsigned way_us = 10'000;
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device, true);
	ASSERT_TRUE(round.ok());
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_TRUE(round->post());
		// Virtual time passes for all tasks at once, and does not show how often the card
		// has run.
		do
			kern::sleep_us(way_us, way_us);
		while (!round->arrived());
		EXPECT_TRUE(round->wakes());
		EXPECT_TRUE(round->sleep_until_complete(1));
		ib_wc wc;
		ASSERT_TRUE(fixture::next(round->sent(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	}
}

/*
 * Armed again after the event without a poll: there is another event, or the return value requests
 * a poll (NOTIFY-06).
 */
void cq_rearmed_without_a_poll_raises_an_event_or_reports_missed_events(Test &test)
{
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device, true);
	ASSERT_TRUE(round.ok());
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_TRUE(round->post());
		EXPECT_TRUE(round->wakes());
		EXPECT_TRUE(round->wakes_or_is_reported());
		EXPECT_TRUE(round->wakes_or_is_reported());
		EXPECT_TRUE(round->sleep_until_complete(1));
		ib_wc wc;
		ASSERT_TRUE(fixture::next(round->sent(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	}
}

/*
 * Two tasks post on one QP and poll its one CQ at once (LOCK-04): each request completes once.
 */
class Sharer
{
public:
	static constexpr unsigned each = 3, sharers = 2;

	Sharer(Round &round, kern::Atomic<u64> &sends, kern::Atomic<u64> &receives, unsigned index)
	    : round_(round), sends_(sends), receives_(receives), index_(index)
	{
	}
	bool good() const { return good_; }
	/* One bit for each request in one direction. */
	static constexpr u64 all = (u64{1} << each * sharers) - 1;

	int run()
	{
		for (unsigned i = 0; i < each; i++)
			good_ = round_.post(index_ * each + i) && good_;
		good_ = eventually([this] {
				ib_wc wc;
				while (round_.cq()->poll(1, &wc) == 1)
					take(wc);
				return sends_.load_relaxed() == all &&
				       receives_.load_relaxed() == all;
			}) &&
			good_;
		return 0;
	}

private:
	void take(const ib_wc &wc)
	{
		const u64 bit = u64{1} << wc.wr_id;
		auto &seen = wc.opcode & IB_WC_RECV ? receives_ : sends_;
		good_ = wc.status == IB_WC_SUCCESS && wc.wr_id < each * sharers &&
			!(seen.fetch_or(bit) & bit) && good_;
	}

	Round &round_;
	kern::Atomic<u64> &sends_, &receives_;
	const unsigned index_;
	bool good_ = true;
};

void lock_04_tasks_that_share_a_qp_get_all_completions(Test &test)
{
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device);
	ASSERT_TRUE(round.ok());
	kern::Atomic<u64> sends{0}, receives{0};
	Sharer one(*round, sends, receives, 0), other(*round, sends, receives, 1);
	{
		auto thread = kern::Thread::create("sharer", kern::method<&Sharer::run>, &other);
		ASSERT_OK(thread);
		one.run();
	}
	EXPECT_EQ(sends.load_relaxed(), Sharer::all);
	EXPECT_EQ(receives.load_relaxed(), Sharer::all);
	EXPECT_TRUE(one.good());
	EXPECT_TRUE(other.good());
}

/*
 * LOCK-01: functions for any context work in a hard interrupt, where sleeping is reported: posting,
 * polling, arming, and mapping the pages of an existing region.
 */
void lock_01_card_driver_posts_requests_and_polls_and_arms_a_cq_in_a_hard_interrupt(Test &test)
{
	struct InInterrupt {
		void run()
		{
			ib_wc wc;
			posted = round.post(1);
			armed = round.cq()->request_notification(IB_CQ_NEXT_COMP |
								 IB_CQ_REPORT_MISSED_EVENTS);
			while (round.cq()->poll(1, &wc) == 1)
				polled++;
			const ib_dma_segment segment{4 * kern::page_size, kern::page_size};
			if (mr)
				mapped = ib_map_mr_sg(mr, &segment, 1, nullptr, kern::page_size);
		}
		Round &round;
		ib_mr *mr;
		bool posted = false;
		int armed = -1, mapped = 1;
		unsigned polled = 0;
		kern::IrqWork work{kern::method<&InInterrupt::run>, this};
	};
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device);
	ASSERT_TRUE(round.ok());
	auto pd = rdma::Pd::create(device.get());
	ASSERT_OK(pd);
	const bool registers = device.get()->attrs.max_fast_reg_page_list_len > 0;
	ib_mr *mr = registers ? ib_alloc_mr(pd.value()->get(), IB_MR_TYPE_MEM_REG, 1) : nullptr;
	ASSERT_FALSE(rdma::is_err(mr));
	InInterrupt interrupt{.round = *round, .mr = mr};
	interrupt.work.queue();
	interrupt.work.wait();
	EXPECT_TRUE(interrupt.posted);
	EXPECT_GE(interrupt.armed, 0);
	EXPECT_EQ(interrupt.mapped, 1);
	for (unsigned left = 2 - interrupt.polled; left > 0; left--) {
		ib_wc wc;
		ASSERT_TRUE(fixture::next(round->cq(), wc));
		EXPECT_EQ(wc.status, IB_WC_SUCCESS);
	}
	if (mr)
		(void)ib_dereg_mr(mr);
}

/* Every part of the address shows which of the two addresses it belongs to. */
rdma_ah_attr address_of(unsigned which)
{
	rdma_ah_attr attr{};
	attr.port_num = 1;
	attr.type = RDMA_AH_ATTR_TYPE_IB;
	attr.sl = static_cast<u8>(1 + which);
	rdma_ah_set_dlid(&attr, 0x100 + which);
	rdma_ah_set_path_bits(&attr, static_cast<u8>(1 + which));
	ib_gid gid{};
	for (u8 &byte : gid.raw)
		byte = static_cast<u8>(0xa0 + which);
	rdma_ah_set_grh(&attr, &gid, 0x1000 + which, 0, static_cast<u8>(10 + which),
			static_cast<u8>(20 + which));
	return attr;
}

bool is_whole(const rdma_ah_attr &attr)
{
	for (unsigned which = 0; which < 2; which++) {
		const rdma_ah_attr expected = address_of(which);
		if (attr.ib.dlid == expected.ib.dlid &&
		    attr.ib.src_path_bits == expected.ib.src_path_bits && attr.sl == expected.sl &&
		    attr.grh.dgid == expected.grh.dgid &&
		    attr.grh.flow_label == expected.grh.flow_label &&
		    attr.grh.hop_limit == expected.grh.hop_limit &&
		    attr.grh.traffic_class == expected.grh.traffic_class)
			return true;
	}
	return false;
}

/* LOCK-04: if one task changes an address, another reads either the old or the new one. */
void lock_04_query_ah_during_modify_ah_returns_no_mixture_of_old_and_new_address(Test &test)
{
	struct Writer {
		int run()
		{
			for (unsigned i = 1; i <= 8; i++) {
				rdma_ah_attr attr = address_of(i % 2);
				error |= rdma_modify_ah(ah, &attr);
			}
			return 0;
		}
		ib_ah *ah;
		int error = 0;
	};
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	auto pd = rdma::Pd::create(device.get());
	ASSERT_OK(pd);
	rdma_ah_attr first = address_of(0);
	Writer writer{rdma_create_ah(pd.value()->get(), &first, 0)};
	ASSERT_FALSE(rdma::is_err(writer.ah));
	{
		auto thread = kern::Thread::create("writer", kern::method<&Writer::run>, &writer);
		ASSERT_OK(thread);
		for (unsigned i = 0; i < 8; i++) {
			rdma_ah_attr read{};
			EXPECT_EQ(rdma_query_ah(writer.ah, &read), 0);
			EXPECT_TRUE(is_whole(read));
		}
	}
	EXPECT_EQ(writer.error, 0);
	rdma_destroy_ah(writer.ah, 0);
}

} // namespace

#define EXPLORED_CASES                                                                                   \
	KUNIT_CASE(card_removal_frees_all_resources),                                                    \
		KUNIT_CASE(failed_probe_frees_all_resources),                                            \
		KUNIT_CASE(qp_connected_to_itself_receives_its_message),                                 \
		KUNIT_CASE(completion_before_or_after_the_cq_is_armed_wakes_the_waiting_task),           \
		KUNIT_CASE(cq_armed_after_an_unpolled_completion_raises_an_event),                       \
		KUNIT_CASE(cq_rearmed_without_a_poll_raises_an_event_or_reports_missed_events),          \
		KUNIT_CASE(                                                                              \
			lock_01_card_driver_posts_requests_and_polls_and_arms_a_cq_in_a_hard_interrupt), \
		KUNIT_CASE(lock_04_tasks_that_share_a_qp_get_all_completions),                           \
		KUNIT_CASE(                                                                              \
			lock_04_query_ah_during_modify_ah_returns_no_mixture_of_old_and_new_address)
