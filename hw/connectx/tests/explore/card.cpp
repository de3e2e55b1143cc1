// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The driver above the emulated card under the explorer, both in one process and in one time.
#include <kern/abi/explore.h>
#include <kern/completion.hpp>
#include <kern/dma.hpp>
#include "../../../../core/verbs/tests/fixture.hpp"

using kern::kunit::eventually;
using kern::kunit::Test;

namespace
{

/* The device that the driver has registered, as long as it is there. */
class Device
{
public:
	/* failing: whose allocations fail while the card is probed. */
	explicit Device(kern_explore_failing failing = KERN_EXPLORE_NOBODY)
	{
		(void)ib_register_client(&client);
		kern_explore_failures(failing);
		kern_explore_plug_card();
		kern_explore_failures(KERN_EXPLORE_NOBODY);
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
	/* The manager has taken the port in; its LID. */
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

	static constinit ib_device *found;
	static constinit ib_client client;
	bool there_ = true;
};
constinit ib_device *Device::found = nullptr;
constinit ib_client Device::client{"explored", Device::add, Device::remove, nullptr};

/* From the reset to the registration, and back: nothing is left of it. */
void a_card_comes_and_goes(Test &test)
{
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	EXPECT_EQ(device.get()->phys_port_cnt, 1u);
	device.pull();
	EXPECT_TRUE(device.get() == nullptr);
}

/* Whatever fails of the probe is undone whole; plugged in again the card is registered. */
void a_card_comes_without_memory(Test &test)
{
	Device(KERN_EXPLORE_THIS_TASK).pull();
	Device device;
	EXPECT_TRUE(device.get() != nullptr);
}

/* A QP that is connected to itself: what it sends it receives. */
class Round
{
public:
	static constexpr u32 bytes = 64;

	/* apart: what is received completes in a CQ of its own. */
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

	/* One receive, and one send for it. */
	bool post()
	{
		ib_sge to{memory_.address() + kern::page_size / 2, bytes, pd_->local_dma_lkey()};
		ib_sge from{memory_.address(), bytes, pd_->local_dma_lkey()};
		ib_recv_wr receive{};
		receive.sg_list = &to;
		receive.num_sge = 1;
		auto send = fixture::send_wr(&from, IB_WR_SEND);
		return ib_post_recv(qp_.get(), &receive, nullptr) == 0 &&
		       ib_post_send(qp_.get(), &send, nullptr) == 0;
	}
	bool arrived() const
	{
		const u8 *sent = memory_.as<u8>();
		return __builtin_memcmp(sent, sent + kern::page_size / 2, bytes) == 0;
	}
	/* Takes so many completions; asleep between an event and the next, for a minute at most. */
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
	/* Without a look whether there is something. */
	bool wakes()
	{
		return cq_->request_notification(IB_CQ_NEXT_COMP) == 0 && woken_.wait_for(60'000);
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

/* From the driver by the card and its link to the card and the driver. */
void a_message_comes_back(Test &test)
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

/* Whenever a completion comes, before the CQ is armed or after it, who sleeps is woken. */
void who_sleeps_is_woken(Test &test)
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
 * Asked for an event when a single completion has come, which nobody has polled and none follows
 * that would make up for it, the card gives it (NOTIFY-06).
 */
void armed_when_one_has_come(Test &test)
{
	constexpr unsigned way_us = 10'000;
	Device device;
	ASSERT_TRUE(device.get() != nullptr);
	kern::kunit::Boxed<Round> round(device, true);
	ASSERT_TRUE(round.ok());
	for (unsigned i = 0; i < 2; i++) {
		ASSERT_TRUE(round->post());
		// Time passes for all at once: how often the card has had its turn, it does not
		// say.
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

} // namespace

KUNIT_SUITE(explore_connectx, KUNIT_CASE(a_card_comes_and_goes),
	    KUNIT_CASE(a_card_comes_without_memory), KUNIT_CASE(a_message_comes_back),
	    KUNIT_CASE(who_sleeps_is_woken), KUNIT_CASE(armed_when_one_has_come));
