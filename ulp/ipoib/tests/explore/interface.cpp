// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that several tasks can operate on one interface at the same time, under many thread
// interleavings (weft-explore(1)). There is no SA, which keeps a run short: the interface stays in
// the state `waiting`, with running queues, and the test resolves the destinations of its packets.
#include <kern/abi/explore.h>
#include <kern/completion.hpp>
#include <kern/thread.hpp>
#include "../fixture.hpp"

using namespace ipoib;
using kern::kunit::Test;

namespace
{

constexpr const char *name = "ib0", *child_name = "ib0.8001";
constexpr u16 child_pkey = 0x8001;
/* This length is too long for inline data. */
constexpr unsigned long_packet = 1000;

HardwareAddress peer()
{
	ib::Gid gid{};
	gid.raw[8] = 5;
	return HardwareAddress::make(5, gid);
}

/* Runs a function of the test in another task, and waits for it. */
template<class Body>
class Meanwhile
{
public:
	explicit Meanwhile(Body body) : body_(body)
	{
		auto made = kern::Thread::create("meanwhile", kern::method<&Meanwhile::run>, this);
		if (made.ok())
			thread_ = made.take();
	}
	~Meanwhile() { ended_.wait(); }

private:
	int run()
	{
		body_();
		ended_.complete();
		return 0;
	}

	Body body_;
	kern::Completion ended_;
	kern::Thread thread_;
};

/* A device with the interface that the module has created on it, with small rings. */
class Host
{
public:
	explicit Host(unsigned vectors = 1)
	    : device_({.vectors = vectors,
		       .lid = 2,
		       .lacks = RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_SMI | RDMA_CORE_CAP_IB_SA,
		       .dma_device = dma_.native()})
	{
		kern::RtnlGuard rtnl;
		if (net_device *dev = kern_explore_netdev(name)) {
			interface_ = Interface::of(dev);
			ok_ = netdev_ops.set_rings(interface_, 64, 64) == 0;
		}
	}
	bool ok() const { return ok_; }
	ib_device *device() const { return device_.get(); }
	Interface &interface() const { return *interface_; }
	net_device *dev() const { return interface_->netdev(); }

	int up(bool up = true) const
	{
		kern::RtnlGuard rtnl;
		return kern_kunit_netdev_up(dev(), up);
	}
	/*
	 * Returns true once the path to the peer is known, and false if the first packet did not
	 * request it.
	 */
	bool find_peer() const
	{
		const HardwareAddress address = peer();
		rdma_ah_attr where{};
		where.type = RDMA_AH_ATTR_TYPE_IB;
		rdma_ah_set_dlid(&where, 77);
		rdma_ah_set_port_num(&where, 1);
		(void)send();
		if (!interface_->sends_to(address))
			return false;
		interface_->resolved(address, Handle::create(interface_->qp()->pd, where));
		return true;
	}
	int send() const
	{
		const HardwareAddress address = peer();
		return kern_explore_send(name, &address, long_packet);
	}
	/* Reports the transmit queues as stuck. */
	void report_stuck() const { netdev_ops.tx_timeout(interface_, 0); }
	kern_net_stats stats() const
	{
		kern_net_stats now{};
		kern_kunit_netdev_stats(dev(), &now);
		return now;
	}

private:
	kern::kunit::FakeDevice dma_{"explored"};
	::fixture::Device device_;
	Interface *interface_ = nullptr;
	bool ok_ = false;
};

/*
 * The administrator closes the interface at any moment of a recovery, any command of which may
 * fail.
 */
void interface_can_be_closed_during_recovery_from_a_transmit_timeout(Test &test)
{
	/* The transitions to ERR, RESET, INIT, RTR and RTS. */
	constexpr unsigned commands = 5;
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.ok());
	ASSERT_EQ(host->up(), 0);
	{
		ipoib::fixture::FailNth fault(
			host->device(), SOFT_MODIFY_QP,
			1 + static_cast<unsigned>(test.seed() / 2 % commands));
		host->report_stuck();
		Meanwhile administrator([&] { (void)host->up(false); });
	}
	ASSERT_EQ(host->up(), 0);
	(void)host->up(false);
	EXPECT_EQ(host->interface().state(), Interface::State::down);
}

/* Observes each QP command, and checks that no queue is started while the queues are restarted. */
struct Watch {
	Watch(Test &of_test, const Host &host)
	    : test(of_test), device(host.device()), queue(kern_netdev_tx_queue(host.dev(), 0))
	{
		soft_interpose(
			device, SOFT_MODIFY_QP,
			[](void *context) { static_cast<Watch *>(context)->look(); }, this);
	}
	~Watch() { soft_interpose(device, SOFT_MODIFY_QP, nullptr, nullptr); }
	void look()
	{
		EXPECT_TRUE(kern_txq_stopped(queue));
		commands.fetch_add(1);
	}

	Test &test;
	ib_device *const device;
	netdev_queue *const queue;
	kern::Atomic<unsigned> commands{};
};

/* Completions that arrive while the queues are being stopped do not restart them. */
void transmit_queues_stay_stopped_during_recovery_from_a_transmit_timeout(Test &test)
{
	constexpr unsigned commands = 5;
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.ok());
	ASSERT_EQ(host->up(), 0);
	ASSERT_TRUE(host->find_peer());
	{
		Watch watch(test, *host);
		Meanwhile program([&] {
			for (unsigned i = 0; i < 3; i++)
				(void)host->send();
		});
		host->report_stuck();
		EXPECT_TRUE(kern::kunit::eventually(
			[&] { return watch.commands.load_relaxed() == commands; }));
		/* A recovery holds the rtnl lock until it has finished. */
		kern::RtnlGuard rtnl;
	}
	(void)host->up(false);
}

/*
 * New rings use new memory. A reader of the statistics takes no lock, and still finds the counters.
 */
void statistics_are_readable_during_ring_resize(Test &test)
{
	kern::kunit::Boxed<Host> host(2u);
	ASSERT_TRUE(host.ok());
	ASSERT_EQ(host->up(), 0);
	ASSERT_TRUE(host->find_peer());
	EXPECT_EQ(host->send(), 0);
	(void)host->up(false);
	const u64 sent = host->stats().tx_packets;
	EXPECT_EQ(sent, 1u);
	{
		Meanwhile reader([&] {
			for (unsigned i = 0; i < 4; i++)
				EXPECT_LE(host->stats().tx_packets, sent);
		});
		kern::RtnlGuard rtnl;
		EXPECT_EQ(netdev_ops.set_rings(&host->interface(), 128, 64), 0);
	}
}

/*
 * The device is removed while the deletion of the child waits, without the rtnl lock, for the last
 * user of the child.
 */
void child_can_be_deleted_during_device_removal(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.ok());
	ASSERT_EQ(kern_explore_link_add(name, child_pkey), 0);
	{
		Meanwhile administrator([&] { (void)kern_explore_link_delete(child_name); });
		Meanwhile program([&] {
			const HardwareAddress address = peer();
			(void)kern_explore_send(child_name, &address, long_packet);
		});
		host.reset();
	}
}

/*
 * The interface is closed while it joins the groups that programs listen to. No group remains
 * joined.
 */
void interface_closed_during_a_join_leaves_all_multicast_groups(Test &test)
{
	constexpr u8 groups = 4;
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.ok());
	HardwareAddress address = host->interface().broadcast();
	for (u8 number = 0; number < groups; number++) {
		address.gid.raw[15] = number;
		ASSERT_EQ(kern_explore_listen(name, &address), 0);
	}
	ASSERT_EQ(host->up(), 0);
	ASSERT_EQ(host->up(false), 0);
	host.reset();
}

/* While this object exists, allocations of this task fail as determined by the seed. */
class Failures
{
public:
	Failures() { kern_explore_failures(KERN_EXPLORE_THIS_TASK); }
	~Failures() { kern_explore_failures(KERN_EXPLORE_NONE); }
	Failures(const Failures &) = delete;
	Failures &operator=(const Failures &) = delete;
};

/*
 * If any step of registering a device, its agents and its interface fails, nothing is left of them.
 */
void failed_device_registration_frees_all_resources(Test &test)
{
	kern::kunit::Boxed<kern::kunit::FakeDevice> dma("explored");
	ASSERT_TRUE(dma.there() && dma->native());
	for (unsigned i = 0; i < 2; i++) {
		kern_explore_failures(KERN_EXPLORE_THIS_TASK);
		const ::fixture::Device device({.lid = 2, .dma_device = dma->native()});
		kern_explore_failures(KERN_EXPLORE_NONE);
		kern::RtnlGuard rtnl;
		net_device *dev = kern_explore_netdev(name);
		if (dev && kern_kunit_netdev_up(dev, true) == 0)
			EXPECT_EQ(kern_kunit_netdev_up(dev, false), 0);
		EXPECT_TRUE(!dev || device.ok());
	}
}

/*
 * If the allocation of rings fails twice, the interface either is closed, or can be opened and
 * sends.
 */
void interface_can_be_reopened_and_can_send_after_two_failed_ring_allocations(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.ok());
	{
		kern::RtnlGuard rtnl;
		Failures failures;
		for (u32 size : {128u, 256u})
			(void)netdev_ops.set_rings(&host->interface(), size, size);
		(void)kern_kunit_netdev_up(host->dev(), true);
	}
	(void)host->stats();
	(void)host->up(false);
	{
		kern::RtnlGuard rtnl;
		kern_rings rings{};
		netdev_ops.get_rings(&host->interface(), &rings);
		EXPECT_TRUE(rings.rx == 64 || rings.rx == 128 || rings.rx == 256);
		ASSERT_EQ(netdev_ops.set_rings(&host->interface(), 64, 64), 0);
	}
	ASSERT_EQ(host->up(), 0);
	EXPECT_TRUE(host->find_peer());
	EXPECT_EQ(host->send(), 0);
	(void)host->up(false);
}

/* A child whose creation failed can be created afterwards. */
void child_can_be_created_after_a_failed_attempt(Test &test)
{
	kern::kunit::Boxed<Host> host;
	ASSERT_TRUE(host.ok());
	bool made = false;
	for (unsigned i = 0; i < 2 && !made; i++) {
		Failures failures;
		made = kern_explore_link_add(name, child_pkey) == 0;
	}
	if (!made)
		EXPECT_EQ(kern_explore_link_add(name, child_pkey), 0);
	EXPECT_EQ(kern_explore_link_delete(child_name), 0);
}

} // namespace

KUNIT_SUITE(explore_ipoib,
	    KUNIT_CASE(interface_can_be_closed_during_recovery_from_a_transmit_timeout),
	    KUNIT_CASE(transmit_queues_stay_stopped_during_recovery_from_a_transmit_timeout),
	    KUNIT_CASE(statistics_are_readable_during_ring_resize),
	    KUNIT_CASE(child_can_be_deleted_during_device_removal),
	    KUNIT_CASE(interface_closed_during_a_join_leaves_all_multicast_groups),
	    KUNIT_CASE(failed_device_registration_frees_all_resources),
	    KUNIT_CASE(interface_can_be_reopened_and_can_send_after_two_failed_ring_allocations),
	    KUNIT_CASE(child_can_be_created_after_a_failed_attempt));
