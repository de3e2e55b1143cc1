// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the module as a client of the midlayer: it creates interfaces for ports and children, and
// handles their events.
#include <rdma/driver.hpp>
#include "fixture.hpp"

using namespace ipoib;
using namespace ipoib::fixture;

namespace
{

/* Loads the module's client, so that every port gets an interface. */
class Client
{
public:
	Client() : started_(register_link_kind().ok() && start_client().ok()) {}
	~Client()
	{
		if (started_)
			stop_client();
		unregister_link_kind();
	}
	Client(const Client &) = delete;
	Client &operator=(const Client &) = delete;
	bool ok() const { return started_; }

private:
	const bool started_;
};

bool set_up(const Interface &interface, bool up)
{
	kern::RtnlGuard rtnl;
	return kern_kunit_netdev_up(interface.netdev(), up) == 0;
}

bool carrier_becomes(const Interface &interface, bool on)
{
	return eventually([&] { return kern_netdev_carrier_ok(interface.netdev()) == on; });
}

/*
 * Opens the first port's interface while the second port's is being created, and takes the first
 * port down when that interface runs, as udev and a cable may do.
 */
class OpensDuringRegistration
{
public:
	explicit OpensDuringRegistration(ib_device *device) : device_(device)
	{
		INIT_IB_EVENT_HANDLER(&handler_, device, on_event);
		handler_.owner = this;
		ib_register_event_handler(&handler_);
		soft_interpose(
			device, SOFT_QUERY_PORT,
			[](void *context) {
				static_cast<OpensDuringRegistration *>(context)->on_query();
			},
			this);
	}
	~OpensDuringRegistration()
	{
		soft_interpose(device_, SOFT_QUERY_PORT, nullptr, nullptr);
		ib_unregister_event_handler(&handler_);
	}
	OpensDuringRegistration(const OpensDuringRegistration &) = delete;
	OpensDuringRegistration &operator=(const OpensDuringRegistration &) = delete;

	bool has_run() const { return opened_; }

private:
	struct Handler : ib_event_handler {
		OpensDuringRegistration *owner;
	};
	/* The registering thread holds the RTNL lock only while it creates an interface. */
	void on_query()
	{
		if (kern_context() != thread_ || done_)
			return;
		Interface *first = own_interface(device_, 1);
		if (!first)
			return;
		done_ = true;
		kern_rtnl_unlock();
		opened_ = set_up(*first, true) && carrier_becomes(*first, true);
		ib_port_attr attr{};
		(void)ib_query_port(device_, 1, &attr);
		attr.state = IB_PORT_DOWN;
		soft_set_port(device_, 1, &attr);
		/*
		 * Events are delivered in order: the first has reached all handlers with the
		 * second.
		 */
		rdma::dispatch(IB_EVENT_PORT_ERR, device_, 1);
		rdma::dispatch(IB_EVENT_SM_CHANGE, device_, 2);
		opened_ = eventually([&] { return delivered_.load_acquire(); }) && opened_;
		kern_rtnl_lock();
	}
	static void on_event(ib_event_handler *handler, ib_event *event)
	{
		if (event->event == IB_EVENT_SM_CHANGE)
			static_cast<Handler *>(handler)->owner->delivered_.store_release(true);
	}

	ib_device *const device_;
	const unsigned long thread_ = kern_context();
	bool done_ = false, opened_ = false;
	kern::Atomic<bool> delivered_{};
	Handler handler_{};
};

/* An interface that is opened before the client has handled the whole device follows its port. */
void event_02_interface_opened_during_client_registration_loses_carrier_on_port_err(Test &test)
{
	/* A device that the administrator adds gets an interface, too. */
	kern::kunit::FakeDevice dma{"ipoib_client"};
	ASSERT_TRUE(dma.native() != nullptr);
	mad_fixture::Node node{1, SOFT_NOTIFY_FIRES, SOFT_HARD_INTERRUPT, dma.native()};
	mad_fixture::Administrator administrator{node};
	::fixture::Device device({.ports = 2, .vectors = 4, .lid = 2, .dma_device = dma.native()});
	ASSERT_TRUE(node.ok() && administrator.ok() && device.ok());
	OpensDuringRegistration opening(device.get());
	Client client;
	ASSERT_TRUE(client.ok());
	EXPECT_TRUE(opening.has_run());
	Interface *first = nullptr;
	{
		kern::RtnlGuard rtnl;
		first = own_interface(device.get(), 1);
		EXPECT_TRUE(own_interface(device.get(), 2) != nullptr);
		EXPECT_TRUE(own_interface(device.get(), 3) == nullptr);
	}
	ASSERT_TRUE(first != nullptr);
	EXPECT_TRUE(carrier_becomes(*first, false));
}

/* Children of an interface, as `ip link add link … type ipoib` makes them. */
class Children
{
public:
	explicit Children(Interface &parent) : parent_(parent) {}
	~Children()
	{
		kern::RtnlGuard rtnl;
		while (count_ > 0) {
			remove_child(*children_[--count_]);
			children_[count_]->remove();
		}
	}
	Children(const Children &) = delete;
	Children &operator=(const Children &) = delete;

	int add(u16 pkey)
	{
		kern::RtnlGuard rtnl;
		net_device *dev = kern_netdev_alloc("pod%d", Interface::transmit_queues_wanted());
		if (!dev)
			return -ENOMEM;
		if (const int status = add_child(parent_, dev, pkey).error()) {
			kern_netdev_free(dev);
			return status;
		}
		children_[count_++] = Interface::of(dev);
		return 0;
	}
	Interface &operator[](unsigned index) const { return *children_[index]; }

private:
	Interface &parent_;
	Interface *children_[8]{};
	unsigned count_ = 0;
};

/* A subnet whose SA resolves every path to the device, and the module on that device. */
struct Port {
	kern::kunit::FakeDevice dma{"ipoib_client"};
	mad_fixture::Node node{1, SOFT_NOTIFY_FIRES, SOFT_HARD_INTERRUPT, dma.native()};
	mad_fixture::Administrator administrator{node};
	::fixture::Device device{{.vectors = 4, .lid = 77, .dma_device = dma.native()}};
	Client client;

	bool ok() const
	{
		return node.ok() && administrator.ok() && dma.native() && device.ok() &&
		       client.ok();
	}
	Interface *parent() const
	{
		kern::RtnlGuard rtnl;
		return own_interface(device.get(), 1);
	}
};

u64 received(const Interface &interface)
{
	kern_net_stats now{};
	kern_kunit_netdev_stats(interface.netdev(), &now);
	return now.rx_packets;
}

/*
 * User space may create several children of one partition, including the parent's own, such as one
 * for each container. Each child has its own QP, and all of them reach each other.
 */
void ipoib_10_children_of_one_partition_reach_each_other(Test &test)
{
	Port port;
	ASSERT_TRUE(port.ok());
	Interface *const parent = port.parent();
	ASSERT_TRUE(parent != nullptr);
	Children children(*parent);
	constexpr unsigned count = 3;
	for (unsigned i = 0; i < count; i++)
		ASSERT_EQ(children.add(parent->pkey()), 0);
	ASSERT_TRUE(set_up(*parent, true) && carrier_becomes(*parent, true));
	for (unsigned i = 0; i < count; i++) {
		ASSERT_TRUE(set_up(children[i], true) && carrier_becomes(children[i], true));
		EXPECT_NE(children[i].qp()->qp_num, parent->qp()->qp_num);
	}
	EXPECT_NE(children[0].qp()->qp_num, children[1].qp()->qp_num);
	for (const auto &[from, to] :
	     {std::pair{&children[0], &children[1]}, std::pair{&children[1], &children[2]},
	      std::pair{&children[2], parent}}) {
		const u64 before = received(*to);
		EXPECT_TRUE(eventually([&] {
			(void)kern_kunit_netdev_send(
				from->netdev(), kern_netdev_address(to->netdev()), type_ipv4, 100);
			kern::sleep_ms(1);
			return received(*to) > before;
		}));
	}
}

/*
 * A child that was created through sysfs is identified by its P_Key, so a partition has at most
 * one, and the parent's partition none.
 */
void ipoib_10_second_child_of_a_partition_cannot_be_created_through_sysfs(Test &test)
{
	constexpr u16 pkey = 0x8001;
	Port port;
	ASSERT_TRUE(port.ok());
	Interface *const parent = port.parent();
	ASSERT_TRUE(parent != nullptr);
	Children children(*parent);
	ASSERT_EQ(children.add(pkey), 0);
	kern::RtnlGuard rtnl;
	EXPECT_TRUE(find_child(*parent, pkey) == nullptr);
	EXPECT_ERROR(add_child(*parent, nullptr, parent->pkey()), -ENOTUNIQ);
	ASSERT_OK(add_child(*parent, nullptr, pkey));
	/* The membership bit does not identify another partition. */
	EXPECT_ERROR(add_child(*parent, nullptr, pkey & 0x7fff), -ENOTUNIQ);
	Interface *const made = find_child(*parent, pkey);
	ASSERT_TRUE(made != nullptr && made != &children[0]);
	remove_child(*made);
	made->remove();
	EXPECT_TRUE(find_child(*parent, pkey) == nullptr);
	ASSERT_OK(add_child(*parent, nullptr, pkey));
}

} // namespace

SOFT_SUITES(
	ipoib_client,
	KUNIT_CASE(event_02_interface_opened_during_client_registration_loses_carrier_on_port_err),
	KUNIT_CASE(ipoib_10_children_of_one_partition_reach_each_other),
	KUNIT_CASE(ipoib_10_second_child_of_a_partition_cannot_be_created_through_sysfs));
