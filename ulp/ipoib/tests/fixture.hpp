// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides the fixture of the interface test suites: hosts with a software device and an interface
// on it, and the SA of their subnet.
#pragma once
#include <kern/netdev.hpp>
#include "../../../core/mad/tests/sa_fixture.hpp"
#include "../client.hpp"
#include "../interface.hpp"

namespace ipoib::fixture
{

using ::fixture::eventually;
using kern::kunit::Test;

/* The parts of the module that an interface needs. */
class Module
{
public:
	Module()
	{
		ib_sa_register_client(&sa_client());
		registered_ = register_link_kind().ok();
	}
	~Module()
	{
		if (registered_)
			unregister_link_kind();
		ib_sa_unregister_client(&sa_client());
	}
	Module(const Module &) = delete;
	Module &operator=(const Module &) = delete;
	bool ok() const { return registered_; }

private:
	bool registered_ = false;
};

/* A device and its registered interface. */
class Host
{
public:
	explicit Host(u16 lid, soft_notify notify = SOFT_NOTIFY_FIRES,
		      soft_context context = SOFT_HARD_INTERRUPT, unsigned int gids = 0)
	    : device_({.vectors = 4,
		       .notify = notify,
		       .context = context,
		       .lid = lid,
		       .gids = gids,
		       .dma_device = dma_.native()})
	{
		if (!dma_.native() || !device_.ok())
			return;
		kern::RtnlGuard rtnl;
		auto made = Interface::create(device_.get(), 1, 0xffff, nullptr, nullptr);
		if (made.ok())
			interface_ = made.take();
	}
	~Host() { remove(); }
	Host(const Host &) = delete;
	Host &operator=(const Host &) = delete;

	bool ok() const { return interface_ != nullptr; }
	ib_device *device() const { return device_.get(); }
	Interface &interface() const { return *interface_; }
	net_device *dev() const { return interface_->netdev(); }
	const u8 *address() const { return kern_netdev_address(dev()); }

	void remove()
	{
		if (!interface_)
			return;
		kern::RtnlGuard rtnl;
		std::exchange(interface_, nullptr)->remove();
	}
	/* Forgets the interface, for a test that has removed it. */
	Interface *release() { return std::exchange(interface_, nullptr); }

	int up() const { return set_up(true); }
	void down() const { (void)set_up(false); }
	/* Waits until the interface has joined its broadcast group. */
	bool runs() const
	{
		return eventually([&] { return kern_netdev_carrier_ok(dev()); });
	}

	/* A counter of `ethtool -S`. */
	u64 counter(const char *name) const
	{
		u64 values[64];
		kern_assert(netdev_ops.counter_count <= sizeof(values) / sizeof(values[0]));
		netdev_ops.get_counters(interface_, values);
		for (unsigned i = 0; i < netdev_ops.counter_count; i++)
			if (__builtin_strcmp(netdev_ops.counter_names[i], name) == 0)
				return values[i];
		return ~u64{0};
	}
	kern_net_stats stats() const
	{
		kern_net_stats now{};
		kern_kunit_netdev_stats(dev(), &now);
		return now;
	}
	bool send(const Host &to, unsigned length = 1000) const
	{
		return kern_kunit_netdev_send(dev(), to.address(), type_ipv4, length) == 0;
	}
	/*
	 * Sends one packet at a time until one arrives. Otherwise a packet in flight could be
	 * mistaken for one that the test sends next.
	 */
	bool reaches(const Host &to, unsigned length = 1000) const
	{
		const u64 before = to.stats().rx_packets;
		const auto arrived = [&] { return to.stats().rx_packets > before; };
		return eventually([&] {
			(void)send(to, length);
			const auto deadline = kern::Deadline::in_ms(5'000);
			while (!arrived() && !deadline.passed())
				kern::sleep_us(50, 200);
			return arrived();
		});
	}

	/* Reports the interface as stuck, and waits until it has restarted. */
	void restart() const
	{
		const unsigned long before = soft_calls(device(), SOFT_MODIFY_QP);
		netdev_ops.tx_timeout(interface_, 0);
		(void)eventually([&] { return soft_calls(device(), SOFT_MODIFY_QP) != before; });
		/* It holds the lock from beginning to end. */
		kern::RtnlGuard rtnl;
	}

private:
	int set_up(bool up) const
	{
		kern::RtnlGuard rtnl;
		return kern_kunit_netdev_up(dev(), up);
	}

	kern::kunit::FakeDevice dma_{"ipoib_test"};
	::fixture::Device device_;
	Interface *interface_ = nullptr;
};

/* Two hosts in a subnet. All path records of the SA lead to the second host. */
struct Pair {
	Module module;
	mad_fixture::Node node{1};
	mad_fixture::Administrator administrator{node};
	Host a, b;

	explicit Pair(soft_notify notify = SOFT_NOTIFY_FIRES,
		      soft_context context = SOFT_HARD_INTERRUPT, unsigned int gids = 0)
	    : a(2, notify, context, gids), b(77, notify, context, gids)
	{
	}
	bool ok() const
	{
		return module.ok() && node.ok() && administrator.ok() && a.ok() && b.ok();
	}
	/* Brings both interfaces up, and waits until packets arrive. */
	bool begin() const
	{
		return a.up() == 0 && b.up() == 0 && a.runs() && b.runs() && a.reaches(b);
	}
};

/* Makes the nth call of a method, counted from now, fail once. */
class FailNth
{
public:
	FailNth(ib_device *device, soft_method method, unsigned nth)
	    : device_(device), method_(method), left_(static_cast<int>(nth))
	{
		soft_interpose(
			device, method,
			[](void *context) {
				auto &self = *static_cast<FailNth *>(context);
				if (self.left_.fetch_sub(1) == 1)
					soft_fail(self.device_, self.method_, 1, -EIO);
			},
			this);
	}
	~FailNth()
	{
		soft_interpose(device_, method_, nullptr, nullptr);
		soft_fail(device_, method_, 0, 0);
	}
	FailNth(const FailNth &) = delete;
	FailNth &operator=(const FailNth &) = delete;
	bool failed() const { return left_.load_relaxed() <= 0; }

private:
	ib_device *const device_;
	const soft_method method_;
	kern::Atomic<int> left_;
};

/*
 * Delays the completions of both hosts into the window between a poll and an arm while this object
 * exists.
 */
class InTheWindow
{
public:
	explicit InTheWindow(const Pair &pair) : pair_(pair) { set(true); }
	~InTheWindow() { set(false); }
	InTheWindow(const InTheWindow &) = delete;
	InTheWindow &operator=(const InTheWindow &) = delete;

private:
	void set(bool late)
	{
		soft_complete_late(pair_.a.device(), late);
		soft_complete_late(pair_.b.device(), late);
	}

	const Pair &pair_;
};

} // namespace ipoib::fixture
