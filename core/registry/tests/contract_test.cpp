// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the rules for registering and unregistering devices and clients: the required context,
// refused calls within callbacks, and failing allocations.
#include <kern/abi/net.h>
#include <kern/kunit.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_device_name.h>
#include <rdma/ib_namespaces.h>
#include <rdma/ib_port_counters.h>
#include <rdma/ib_resources.h>
#include "../../verbs/tests/observer.hpp"
#include "fake_device.hpp"

using fixture::Observer;
using verbs::Rule;

namespace
{

/* A client that counts its callbacks, and calls a function of the test in them. */
template<int Number>
struct Client {
	static inline unsigned int adds, removes;
	static inline void (*in_add)(ib_device *device);
	static inline void (*in_remove)(ib_device *device);
	static int add(ib_device *device)
	{
		adds++;
		if (in_add)
			in_add(device);
		return 0;
	}
	static void remove(ib_device *device, void *)
	{
		removes++;
		if (in_remove)
			in_remove(device);
	}
	static void reset()
	{
		adds = removes = 0;
		in_add = in_remove = nullptr;
	}
	static constinit inline ib_client client{
		.name = "contract", .add = add, .remove = remove, .registry = nullptr};
};
using First = Client<1>;
using Second = Client<2>;

/* Each function that is documented to need process context checks it. */
void lock_08_functions_that_need_process_context_check_the_context(kern::kunit::Test &test)
{
	First::reset();
	FakeDeviceOwner device, spare;
	ASSERT_EQ(device.add(), 0);
	const auto checks = [&](const char *name, auto call) {
		kern_watch_sleep_checks();
		call();
		if (!EXPECT_GE(kern_watched_sleep_checks(), 1u))
			kern_kunit_note(test.native(), "%s", name);
	};
	ib_event_handler handler;
	ib_device *memory = nullptr;
	char name[IB_DEVICE_NAME_MAX];

	INIT_IB_EVENT_HANDLER(&handler, device.ib(), [](ib_event_handler *, ib_event *) {});
	checks("_ib_alloc_device", [&] { memory = _ib_alloc_device(sizeof(ib_device)); });
	checks("ib_dealloc_device", [&] { ib_dealloc_device(memory); });
	checks("ib_register_device", [&] { EXPECT_EQ(spare.add(), 0); });
	checks("ib_unregister_device", [&] { spare.remove(); });
	checks("ib_register_client", [] { (void)ib_register_client(&First::client); });
	checks("ib_unregister_client", [] { ib_unregister_client(&First::client); });
	checks("ib_register_event_handler", [&] { ib_register_event_handler(&handler); });
	checks("ib_unregister_event_handler", [&] { ib_unregister_event_handler(&handler); });
	checks("ib_device_get_by_name", [] { (void)ib_device_get_by_name("none"); });
	checks("ib_device_get_from", [] { (void)ib_device_get_from(~0u, KERN_NET_INITIAL); });
	checks("ib_share_devices", [] { (void)ib_share_devices(true); });
	checks("ib_move_device", [&] { (void)ib_move_device(device.ib(), 0, 0); });
	checks("ib_set_rename_notifier", [] { (void)ib_set_rename_notifier(nullptr); });
	checks("ib_rename_device", [&] { (void)ib_rename_device(device.ib(), "a/b"); });
	checks("ib_copy_device_name", [&] { ib_copy_device_name(device.ib(), name); });
	checks("ib_set_resource_source",
	       [] { (void)ib_set_resource_source(IB_RESOURCE_PD, nullptr); });
	checks("ib_set_port_counters", [] { (void)ib_set_port_counters(nullptr); });
	checks("ib_set_port_counters_notifier",
	       [] { (void)ib_set_port_counters_notifier(nullptr); });
	checks("ib_find_node",
	       [&] { (void)ib_find_node(IB_NODE_UVERBS, device.ib(), 1, nullptr); });
}

/*
 * An unregistration from within a callback that would wait for itself is reported and refused: the
 * device and the client stay registered.
 */
void lock_08_unregistering_a_device_or_client_within_a_client_callback_is_refused(
	kern::kunit::Test &test)
{
	First::reset();
	Second::reset();
	FakeDeviceOwner device;
	ASSERT_EQ(ib_register_client(&Second::client), 0);
	First::in_add = First::in_remove = [](ib_device *ib) {
		ib_unregister_device(ib);
		ib_unregister_client(&Second::client);
		ib_unregister_client(&First::client);
	};
	ASSERT_EQ(ib_register_client(&First::client), 0);
	{
		Observer observer;
		ASSERT_EQ(device.add(), 0);
		EXPECT_EQ(observer.count(Rule::lock_08), 3u);
		EXPECT_EQ(observer.total(), 3u);
	}
	EXPECT_EQ(First::adds, 1u);
	EXPECT_EQ(Second::removes, 0u);
	EXPECT_TRUE(ib_device_try_get(device.ib()));
	ib_device_put(device.ib());
	{
		Observer observer;
		device.remove();
		EXPECT_EQ(observer.count(Rule::lock_08), 3u);
	}
	EXPECT_EQ(First::removes, 1u);
	EXPECT_EQ(Second::removes, 1u);
	ib_unregister_client(&First::client);
	ib_unregister_client(&Second::client);
}

/*
 * Lockdep sees the caller of add and remove as the owner of the device, although that is not a
 * lock.
 */
void lock_08_lockdep_treats_the_device_as_locked_in_client_callbacks(kern::kunit::Test &test)
{
	static constinit int in_add, in_remove;
	First::reset();
	in_add = in_remove = -1;
	First::in_add = [](ib_device *) { in_add = kern_lockdep_depth(); };
	First::in_remove = [](ib_device *) { in_remove = kern_lockdep_depth(); };
	const int outside = kern_lockdep_depth();
	if (outside < 0) {
		test.skip("lockdep is off");
		return;
	}
	FakeDeviceOwner device, other;
	ASSERT_EQ(device.add(), 0);
	ASSERT_EQ(ib_register_client(&First::client), 0);
	EXPECT_EQ(in_add, outside + 1);
	in_add = -1;
	ASSERT_EQ(other.add(), 0);
	EXPECT_EQ(in_add, outside + 1);
	other.remove();
	EXPECT_EQ(in_remove, outside + 1);
	in_remove = -1;
	ib_unregister_client(&First::client);
	EXPECT_EQ(in_remove, outside + 1);
	EXPECT_EQ(kern_lockdep_depth(), outside);
}

/*
 * Registers, with each allocation failing once, until none does. A registration that fails has
 * undone each add.
 */
template<class Registration>
void fails_as_a_whole(kern::kunit::Test &test, Registration registration)
{
	for (unsigned int nth = 1; nth < 100; nth++) {
		First::reset();
		Second::reset();
		kern_fail_allocation(nth);
		const int error = registration();
		const bool failed = kern_allocation_failed();
		kern_fail_allocation(0);
		if (!failed) {
			EXPECT_EQ(error, 0);
			EXPECT_GT(nth, 3u);
			return;
		}
		EXPECT_EQ(error, -ENOMEM);
		EXPECT_EQ(First::adds, First::removes);
		EXPECT_EQ(Second::adds, Second::removes);
	}
	EXPECT_TRUE(false);
}

void lock_11_client_is_not_registered_if_an_allocation_fails(kern::kunit::Test &test)
{
	FakeDeviceOwner a, b;
	ASSERT_EQ(a.add(), 0);
	ASSERT_EQ(b.add(), 0);
	fails_as_a_whole(test, [] { return ib_register_client(&First::client); });
	EXPECT_EQ(First::adds, 2u);
	ib_unregister_client(&First::client);
	EXPECT_EQ(First::removes, 2u);
}

void lock_11_device_is_not_registered_if_an_allocation_fails(kern::kunit::Test &test)
{
	FakeDeviceOwner device;
	ASSERT_EQ(ib_register_client(&First::client), 0);
	ASSERT_EQ(ib_register_client(&Second::client), 0);
	fails_as_a_whole(test, [&] { return device.add(); });
	EXPECT_EQ(First::adds, 1u);
	EXPECT_EQ(Second::adds, 1u);
	device.remove();
	EXPECT_EQ(First::removes, 1u);
	ib_unregister_client(&Second::client);
	ib_unregister_client(&First::client);
}

} // namespace

KUNIT_SUITE(
	core_registry_contract,
	KUNIT_CASE(lock_08_functions_that_need_process_context_check_the_context),
	KUNIT_CASE(lock_08_unregistering_a_device_or_client_within_a_client_callback_is_refused),
	KUNIT_CASE(lock_08_lockdep_treats_the_device_as_locked_in_client_callbacks),
	KUNIT_CASE(lock_11_client_is_not_registered_if_an_allocation_fails),
	KUNIT_CASE(lock_11_device_is_not_registered_if_an_allocation_fails));
