// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the cache of ports, and rule EVENT-02: event handlers see the new values in the cache.
#include <kern/irq_work.hpp>
#include "fixture.hpp"

using namespace fixture;

namespace
{

constexpr soft_options two_ports = {.ports = 2, .lid = 10};

/* Values read at registration can be read back for each port; other queries fail. */
void port_cache_returns_the_attributes_of_each_port(Test &test)
{
	Device device(two_ports);
	ASSERT_TRUE(device.ok());
	for (u32 port_num : {1u, 2u}) {
		ib_port_cache port;
		ASSERT_EQ(ib_get_cached_port(device, port_num, &port), 0);
		EXPECT_EQ(port.state, IB_PORT_ACTIVE);
		EXPECT_EQ(port.lid, 9 + port_num);
		EXPECT_EQ(port.sm_lid, 1);
		EXPECT_EQ(port.subnet_prefix, 0xfe80000000000000);
		u16 lid, pkey;
		ib_gid gid;
		EXPECT_EQ(ib_get_cached_lid(device, port_num, &lid), 0);
		EXPECT_EQ(lid, 9 + port_num);
		EXPECT_EQ(rdma_query_gid(device, port_num, 0, &gid), 0);
		EXPECT_EQ(u64{gid.global.interface_id}, u64{device.get()->node_guid} + port_num);
		EXPECT_EQ(ib_get_cached_pkey(device, port_num, 0, &pkey), 0);
		EXPECT_EQ(pkey, 0xffff);
		EXPECT_EQ(ib_get_cached_pkey(device, port_num, 1, &pkey), 0);
		EXPECT_EQ(pkey, 0);
		u32 found_port;
		u16 index;
		EXPECT_EQ(ib_find_cached_gid(device, &gid, &found_port, &index), 0);
		EXPECT_EQ(found_port, port_num);
		EXPECT_EQ(index, 0);
	}
}

/*
 * A device registers with its links down, and can be used. Each port's link changes and is queried
 * independently, and an event reports the port to which it belongs.
 */
void mgmt_10_link_state_and_events_are_separate_for_each_port(Test &test)
{
	Device device({.ports = 2});
	ASSERT_TRUE(device.ok());
	struct Recorder : ib_event_handler {
		kern::Atomic<unsigned int> of[3] = {};
	} recorder;
	INIT_IB_EVENT_HANDLER(
		&recorder, device.get(), [](ib_event_handler *handler, ib_event *event) {
			static_cast<Recorder *>(handler)->of[event->element.port_num].add_relaxed(
				1);
		});
	ib_register_event_handler(&recorder);
	auto pd = rdma::Pd::create(device);
	EXPECT_TRUE(pd.ok());
	const auto state_of = [&](u32 port_num) {
		ib_port_cache port = {};
		(void)ib_get_cached_port(device, port_num, &port);
		return port;
	};
	for (u32 port_num : {1u, 2u}) {
		EXPECT_EQ(state_of(port_num).state, IB_PORT_INIT);
		EXPECT_EQ(state_of(port_num).lid, 0);
	}
	ib_port_attr attr;
	ASSERT_EQ(ib_query_port(device, 2, &attr), 0);
	attr.state = IB_PORT_ACTIVE;
	attr.lid = 22;
	soft_set_port(device, 2, &attr);
	ib_event event = {
		.device = device, .element = {.port_num = 2}, .event = IB_EVENT_PORT_ACTIVE};
	ib_dispatch_event(&event);
	EXPECT_TRUE(eventually([&] { return recorder.of[2].load_relaxed() == 1; }));
	EXPECT_EQ(state_of(2).state, IB_PORT_ACTIVE);
	EXPECT_EQ(state_of(2).lid, 22);
	EXPECT_EQ(state_of(1).state, IB_PORT_INIT);
	EXPECT_EQ(state_of(1).generation, 0u);
	EXPECT_EQ(recorder.of[1].load_relaxed(), 0u);

	attr.state = IB_PORT_DOWN;
	soft_set_port(device, 2, &attr);
	event.event = IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
	EXPECT_TRUE(eventually([&] { return recorder.of[2].load_relaxed() == 2; }));
	EXPECT_EQ(state_of(2).state, IB_PORT_DOWN);
	ib_unregister_event_handler(&recorder);
}

/* Ports and indices that do not exist return EINVAL; values that are not found return ENOENT. */
void port_cache_lookup_of_unknown_ports_and_values_fails(Test &test)
{
	Device device(two_ports);
	ASSERT_TRUE(device.ok());
	ib_port_cache port;
	ib_gid gid = {};
	u16 value;
	u32 port_num;
	for (u32 bad : {0u, 3u, ~0u}) {
		EXPECT_EQ(ib_get_cached_port(device, bad, &port), -EINVAL);
		EXPECT_EQ(ib_get_cached_lid(device, bad, &value), -EINVAL);
		EXPECT_EQ(rdma_query_gid(device, bad, 0, &gid), -EINVAL);
		EXPECT_EQ(ib_find_cached_pkey(device, bad, 0xffff, &value), -EINVAL);
	}
	for (int bad : {-1, 8}) {
		EXPECT_EQ(rdma_query_gid(device, 1, bad, &gid), -EINVAL);
		EXPECT_EQ(ib_get_cached_pkey(device, 1, bad, &value), -EINVAL);
	}
	gid.raw[3] = 7;
	EXPECT_EQ(ib_find_cached_gid(device, &gid, &port_num, &value), -ENOENT);
	EXPECT_EQ(ib_find_cached_gid_by_port(device, &gid, 1, &value), -ENOENT);
	EXPECT_EQ(ib_find_cached_pkey(device, 1, 0x1234, &value), -ENOENT);
	EXPECT_EQ(ib_find_exact_cached_pkey(device, 1, 0x7fff, &value), -ENOENT);
}

/* A full member is found before a limited one. The exact search compares the membership bit. */
void port_cache_lookup_of_a_pkey_prefers_full_membership(Test &test)
{
	Device device(two_ports);
	ASSERT_TRUE(device.ok());
	soft_set_pkey(device, 1, 2, 0x1234);
	soft_set_pkey(device, 1, 3, 0x9234);
	soft_set_pkey(device, 1, 4, 0x0042);
	ib_event event = {
		.device = device, .element = {.port_num = 1}, .event = IB_EVENT_PKEY_CHANGE};
	ib_dispatch_event(&event);
	u16 index;
	ASSERT_TRUE(
		eventually([&] { return ib_find_cached_pkey(device, 1, 0x1234, &index) == 0; }));
	EXPECT_EQ(index, 3);
	EXPECT_EQ(ib_find_exact_cached_pkey(device, 1, 0x1234, &index), 0);
	EXPECT_EQ(index, 2);
	EXPECT_EQ(ib_find_cached_pkey(device, 1, 0x8042, &index), 0);
	EXPECT_EQ(index, 4);
}

struct Listener {
	explicit Listener(ib_device *device)
	{
		INIT_IB_EVENT_HANDLER(&handler, device, received);
		ib_register_event_handler(&handler);
	}
	~Listener() { ib_unregister_event_handler(&handler); }

	static void received(ib_event_handler *handler, ib_event *event)
	{
		auto *self = reinterpret_cast<Listener *>(handler);
		u16 lid = 0;

		(void)ib_get_cached_lid(event->device, event->element.port_num, &lid);
		self->lid.store_relaxed(lid);
		self->events.add_relaxed(1);
	}

	ib_event_handler handler;
	kern::Atomic<u16> lid{0};
	kern::Atomic<unsigned int> events{0};
};

/* Dispatches from a hard interrupt, as a driver does (LOCK-03). */
struct FromInterrupt {
	explicit FromInterrupt(const ib_event &what) : event(what) { work.queue(); }
	void run() { ib_dispatch_event(&event); }

	ib_event event;
	kern::IrqWork work{kern::method<&FromInterrupt::run>, this};
};

/* On each event that changes a port, a handler reads the new value. */
void event_02_event_handlers_read_the_new_value_from_the_port_cache(Test &test)
{
	constexpr ib_event_type events[] = {IB_EVENT_PORT_ACTIVE, IB_EVENT_PORT_ERR,
					    IB_EVENT_LID_CHANGE,  IB_EVENT_PKEY_CHANGE,
					    IB_EVENT_SM_CHANGE,   IB_EVENT_CLIENT_REREGISTER,
					    IB_EVENT_GID_CHANGE};
	Device device(two_ports);
	ASSERT_TRUE(device.ok());
	Listener listener(device);
	u16 lid = 100;
	unsigned int dispatched = 0;
	for (ib_event_type type : events) {
		ib_port_attr attr;
		ASSERT_EQ(ib_query_port(device, 2, &attr), 0);
		attr.lid = ++lid;
		soft_set_port(device, 2, &attr);
		u16 old = 0;
		EXPECT_EQ(ib_get_cached_lid(device, 2, &old), 0);
		EXPECT_NE(old, lid);
		{
			FromInterrupt interrupt(
				{.device = device, .element = {.port_num = 2}, .event = type});
		}
		dispatched++;
		ASSERT_TRUE(
			eventually([&] { return listener.events.load_relaxed() == dispatched; }));
		EXPECT_EQ(listener.lid.load_relaxed(), lid);
	}
}

/*
 * If a port cannot be queried, the cache keeps its old values. The event is delivered nevertheless,
 * and the next one updates the cache.
 */
void port_cache_has_the_old_values_after_a_failed_refresh(Test &test)
{
	Device device(two_ports);
	ASSERT_TRUE(device.ok());
	Listener listener(device);
	const ib_event event = {
		.device = device, .element = {.port_num = 1}, .event = IB_EVENT_LID_CHANGE};
	ib_port_attr attr;
	ASSERT_EQ(ib_query_port(device, 1, &attr), 0);
	attr.lid = 77;
	soft_set_port(device, 1, &attr);
	soft_fail(device, SOFT_QUERY_PORT, 1, -EIO);
	ib_dispatch_event(&event);
	ASSERT_TRUE(eventually([&] { return listener.events.load_relaxed() == 1; }));
	EXPECT_EQ(listener.lid.load_relaxed(), 10);
	ib_dispatch_event(&event);
	ASSERT_TRUE(eventually([&] { return listener.events.load_relaxed() == 2; }));
	EXPECT_EQ(listener.lid.load_relaxed(), 77);
}

} // namespace

SOFT_SUITES(verbs_cache, KUNIT_CASE(port_cache_returns_the_attributes_of_each_port),
	    KUNIT_CASE(mgmt_10_link_state_and_events_are_separate_for_each_port),
	    KUNIT_CASE(port_cache_lookup_of_unknown_ports_and_values_fails),
	    KUNIT_CASE(port_cache_lookup_of_a_pkey_prefers_full_membership),
	    KUNIT_CASE(event_02_event_handlers_read_the_new_value_from_the_port_cache),
	    KUNIT_CASE(port_cache_has_the_old_values_after_a_failed_refresh));
