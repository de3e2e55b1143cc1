// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the registration of devices and clients, and the names of devices.
#include <kern/abi/net.h>
#include <kern/kunit.hpp>
#include <rdma/ib_device_name.h>
#include <rdma/ib_namespaces.h>
#include <rdma/ib_resources.h>
#include "../../verbs/tests/observer.hpp"
#include "fake_device.hpp"

namespace
{

/* A call, in order: 'a' for add or 'r' for remove, the client and the device. */
struct Happened {
	char what;
	const ib_client *client;
	const ib_device *device;
	bool operator==(const Happened &) const = default;
};

struct Diary {
	void write(char what, const ib_client *client, const ib_device *device)
	{
		const unsigned int at = count.fetch_add(1);
		if (at < 64)
			entries[at] = {what, client, device};
	}
	bool is(unsigned int at, char what, const ib_client *client, const ib_device *device) const
	{
		return at < count.load_acquire() && entries[at] == Happened{what, client, device};
	}
	kern::Atomic<unsigned int> count;
	Happened entries[64]{};
};
constinit Diary diary;

/* A client that records its calls, and refuses devices if the test requests that. */
template<int Number>
struct Writer {
	static inline int answer = 0;
	static int add(ib_device *device)
	{
		diary.write('a', &client, device);
		ib_set_client_data(device, &client, device->name);
		return answer;
	}
	static void remove(ib_device *device, void *data)
	{
		diary.write(data == device->name ? 'r' : '!', &client, device);
	}
	static constinit inline ib_client client{
		.name = "writer", .add = add, .remove = remove, .registry = nullptr};
};
using One = Writer<1>;
using Two = Writer<2>;
using Three = Writer<3>;

/* Clears the diary at the beginning of each test. */
struct Fresh {
	Fresh()
	{
		diary.count.store_relaxed(0);
		One::answer = Two::answer = Three::answer = 0;
	}
};

/*
 * Registering a client calls its add for every existing device, and unregistering it calls remove
 * in reverse order.
 */
void lock_11_add_of_a_new_client_is_called_for_each_existing_device(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner a, b;
	ASSERT_EQ(a.add(), 0);
	ASSERT_EQ(b.add(), 0);
	ASSERT_EQ(ib_register_client(&One::client), 0);
	EXPECT_TRUE(diary.is(0, 'a', &One::client, a.ib()));
	EXPECT_TRUE(diary.is(1, 'a', &One::client, b.ib()));
	ib_unregister_client(&One::client);
	EXPECT_TRUE(diary.is(2, 'r', &One::client, b.ib()));
	EXPECT_TRUE(diary.is(3, 'r', &One::client, a.ib()));
	EXPECT_EQ(diary.count.load_relaxed(), 4u);
}

/* Registering a device calls add of every existing client, in the order of their registration. */
void lock_11_new_device_is_added_to_existing_clients(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner device;
	ASSERT_EQ(ib_register_client(&One::client), 0);
	ASSERT_EQ(ib_register_client(&Two::client), 0);
	const int status = device.add();
	EXPECT_EQ(status, 0);
	EXPECT_TRUE(diary.is(0, 'a', &One::client, device.ib()));
	EXPECT_TRUE(diary.is(1, 'a', &Two::client, device.ib()));
	EXPECT_EQ(diary.count.load_relaxed(), 2u);
	device.remove();
	ib_unregister_client(&Two::client);
	ib_unregister_client(&One::client);
	EXPECT_EQ(diary.count.load_relaxed(), 4u);
}

/* Remove runs in the reverse order of add. */
void lock_11_client_remove_callbacks_run_in_reverse_order_of_add(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner device;
	ASSERT_EQ(ib_register_client(&Three::client), 0);
	ASSERT_EQ(ib_register_client(&One::client), 0);
	EXPECT_EQ(device.add(), 0);
	ASSERT_EQ(ib_register_client(&Two::client), 0);
	device.remove();
	ib_unregister_client(&One::client);
	ib_unregister_client(&Two::client);
	ib_unregister_client(&Three::client);
	EXPECT_TRUE(diary.is(0, 'a', &Three::client, device.ib()));
	EXPECT_TRUE(diary.is(1, 'a', &One::client, device.ib()));
	EXPECT_TRUE(diary.is(2, 'a', &Two::client, device.ib()));
	EXPECT_TRUE(diary.is(3, 'r', &Two::client, device.ib()));
	EXPECT_TRUE(diary.is(4, 'r', &One::client, device.ib()));
	EXPECT_TRUE(diary.is(5, 'r', &Three::client, device.ib()));
	EXPECT_EQ(diary.count.load_relaxed(), 6u);
}

/*
 * A client whose add failed gets no remove and no other call for that device, and has no data
 * stored for it.
 */
void lock_11_client_is_not_called_again_after_a_failed_add(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner device;
	One::answer = -ENODEV;
	ASSERT_EQ(ib_register_client(&One::client), 0);
	EXPECT_EQ(device.add(), 0);
	One::answer = 0;
	ASSERT_EQ(ib_register_client(&Two::client), 0);
	EXPECT_EQ(ib_get_client_data(device.ib(), &One::client), nullptr);
	EXPECT_EQ(ib_get_client_data(device.ib(), &Two::client),
		  static_cast<void *>(device.ib()->name));
	device.remove();
	EXPECT_EQ(diary.count.load_relaxed(), 3u);
	EXPECT_TRUE(diary.is(2, 'r', &Two::client, device.ib()));
	ib_unregister_client(&Two::client);
	ib_unregister_client(&One::client);
	EXPECT_EQ(diary.count.load_relaxed(), 3u);
}

/*
 * A client that registers another one from its add, which is then added too: no lock is held
 * meanwhile.
 */
struct Inviter {
	static inline ib_device *found;
	static inline int status;
	static void received(ib_event_handler *, ib_event *) {}
	static constinit inline ib_event_handler handler{};
	static int add(ib_device *device)
	{
		found = ib_device_get_by_name(device->name);
		if (found)
			ib_device_put(found);
		INIT_IB_EVENT_HANDLER(&handler, device, received);
		ib_register_event_handler(&handler);
		status = ib_register_client(&Two::client);
		return 0;
	}
	static void remove(ib_device *device, void *)
	{
		(void)device;
		ib_unregister_event_handler(&handler);
	}
	static constinit inline ib_client client{
		.name = "inviter", .add = add, .remove = remove, .registry = nullptr};
};

void lock_08_client_callbacks_can_register_clients_and_find_devices(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner device;
	Inviter::status = -EIO;
	ASSERT_EQ(ib_register_client(&Inviter::client), 0);
	EXPECT_EQ(device.add(), 0);
	EXPECT_EQ(Inviter::found, device.ib());
	EXPECT_EQ(Inviter::status, 0);
	EXPECT_TRUE(diary.is(0, 'a', &Two::client, device.ib()));
	ib_unregister_client(&Inviter::client);
	if (Inviter::status == 0)
		ib_unregister_client(&Two::client);
	EXPECT_TRUE(diary.is(1, 'r', &Two::client, device.ib()));
}

/*
 * All that is constant about a device is known when the first add is called, and until the last
 * remove has returned.
 */
struct Looker {
	static inline bool complete_in_add, complete_in_remove;
	static bool complete(ib_device *device)
	{
		ib_port_attr attr;
		return device->name[0] && device->attrs.vendor_id == 0x1234 &&
		       device->port_immutable && device->port_immutable[2].pkey_tbl_len == 1 &&
		       ib_query_port(device, 1, &attr) == 0 &&
		       ib_query_port(device, 3, &attr) == -EINVAL;
	}
	static int add(ib_device *device)
	{
		complete_in_add = complete(device);
		return 0;
	}
	static void remove(ib_device *device, void *) { complete_in_remove = complete(device); }
	static constinit inline ib_client client{
		.name = "looker", .add = add, .remove = remove, .registry = nullptr};
};

void lock_09_device_can_be_queried_in_client_callbacks(kern::kunit::Test &test)
{
	FakeDeviceOwner device;
	Looker::complete_in_add = Looker::complete_in_remove = false;
	ASSERT_EQ(ib_register_client(&Looker::client), 0);
	EXPECT_EQ(device.add(), 0);
	device.remove();
	ib_unregister_client(&Looker::client);
	EXPECT_TRUE(Looker::complete_in_add);
	EXPECT_TRUE(Looker::complete_in_remove);
}

/*
 * A leaked handler is reported with its owner. The device is unregistered nevertheless, and the
 * handler is not called any more.
 */
void lock_10_leaked_event_handler_is_reported(kern::kunit::Test &test)
{
	static int handled;
	ib_event_handler handler;
	FakeDeviceOwner device;
	handled = 0;
	ASSERT_EQ(device.add(), 0);
	INIT_IB_EVENT_HANDLER(&handler, device.ib(),
			      ([](ib_event_handler *, ib_event *) { handled++; }));
	ib_register_event_handler(&handler);
	{
		fixture::Observer observer;
		device.remove();
		EXPECT_EQ(observer.count(verbs::Rule::lock_10), 1u);
		EXPECT_EQ(observer.total(), 1u);
		EXPECT_EQ(__builtin_strcmp(observer.last(), "event handler"), 0);
		EXPECT_EQ(__builtin_strcmp(observer.last_owner(), RDMA_CALLER), 0);
	}
	rdma::dispatch(IB_EVENT_PORT_ERR, device.ib(), 1);
	ASSERT_EQ(device.add(), 0);
	device.remove();
	EXPECT_EQ(handled, 0);
}

/*
 * A device gets the lowest free name of its pattern. An invalid name is refused, and nothing is
 * left of the attempt.
 */
void device_gets_the_lowest_free_number_of_its_name_pattern(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner a, b, c;
	ASSERT_EQ(a.add("unique%d"), 0);
	ASSERT_EQ(b.add("unique%d"), 0);
	EXPECT_EQ(__builtin_strcmp(a.ib()->name, "unique0"), 0);
	EXPECT_EQ(__builtin_strcmp(b.ib()->name, "unique1"), 0);
	EXPECT_EQ(c.add("unique1"), -EEXIST);
	a.remove();
	EXPECT_EQ(ib_device_get_by_name("unique0"), nullptr);
	ASSERT_EQ(c.add("unique%d"), 0);
	EXPECT_EQ(__builtin_strcmp(c.ib()->name, "unique0"), 0);
	ib_device *found = ib_device_get_by_name("unique0");
	EXPECT_EQ(found, c.ib());
	if (found)
		ib_device_put(found);
	for (const char *bad :
	     {"", ".", "..", "a%db%d", "a%s", "a/b", "a b",
	      "long-long-long-long-long-long-long-long-long-long-long-long-long-long"})
		EXPECT_EQ(a.add(bad), -EINVAL);
	ASSERT_EQ(ib_register_client(&One::client), 0);
	EXPECT_EQ(diary.count.load_relaxed(), 2u);
	ib_unregister_client(&One::client);
}

/* Stands for sysfs: records the last name that it was asked to show. */
struct RenameNotifier {
	static inline int answer = 0;
	static inline unsigned int asked = 0;
	static inline char shown[IB_DEVICE_NAME_MAX];
	/* The name that other code reads during the call. */
	static inline char read[IB_DEVICE_NAME_MAX];
	/* Tries to register under the name that another is about to get, and under its old one. */
	static inline FakeDeviceOwner *thief = nullptr;
	static inline const char *old = nullptr;
	static inline int stolen = 0, stolen_old = 0;
	static int steal(const char *name)
	{
		const int status = thief->add(name);

		if (!status)
			thief->remove();
		return status;
	}
	static int rename(ib_device *device, const char *name)
	{
		asked++;
		__builtin_memcpy(shown, name, __builtin_strlen(name) + 1);
		ib_copy_device_name(device, read);
		if (thief) {
			stolen = steal(name);
			stolen_old = steal(old);
		}
		return answer;
	}
	static constexpr ib_rename_notifier notifier{.rename = rename};
};

bool is_called(const ib_device *device, const char *name)
{
	char its[IB_DEVICE_NAME_MAX];

	ib_copy_device_name(device, its);
	return __builtin_strcmp(its, name) == 0;
}

/*
 * A device has its new name before sysfs shows it; a name that sysfs refuses or another device has
 * is rejected. During the renaming no other device can get either name; afterwards the old one is
 * free.
 */
void device_rename_reserves_both_names_until_it_is_finished(kern::kunit::Test &test)
{
	RenameNotifier::answer = 0;
	RenameNotifier::asked = 0;
	RenameNotifier::thief = nullptr;
	FakeDeviceOwner a, b, c;
	ASSERT_EQ(a.add("before%d"), 0);
	ASSERT_EQ(b.add("before%d"), 0);
	EXPECT_EQ(ib_rename_device(a.ib(), "no-notifier"), 0);
	EXPECT_TRUE(is_called(a.ib(), "no-notifier"));

	ASSERT_EQ(ib_set_rename_notifier(&RenameNotifier::notifier), 0);
	EXPECT_EQ(ib_set_rename_notifier(&RenameNotifier::notifier), -EBUSY);
	for (const char *bad :
	     {"", ".", "..", "a%d", "100%", "a/b", "a b", "\x80",
	      "long-long-long-long-long-long-long-long-long-long-long-long-long-long"})
		EXPECT_EQ(ib_rename_device(a.ib(), bad), -EINVAL);
	EXPECT_EQ(ib_rename_device(a.ib(), "before1"), -EEXIST);
	EXPECT_EQ(ib_rename_device(a.ib(), "no-notifier"), 0);
	EXPECT_EQ(RenameNotifier::asked, 0u);

	RenameNotifier::answer = -ENOMEM;
	EXPECT_EQ(ib_rename_device(a.ib(), "after"), -ENOMEM);
	EXPECT_TRUE(is_called(a.ib(), "no-notifier"));
	RenameNotifier::answer = 0;
	RenameNotifier::thief = &c;
	RenameNotifier::old = "no-notifier";
	EXPECT_EQ(ib_rename_device(a.ib(), "after"), 0);
	EXPECT_EQ(__builtin_strcmp(RenameNotifier::shown, "after"), 0);
	EXPECT_EQ(__builtin_strcmp(RenameNotifier::read, "after"), 0);
	EXPECT_EQ(RenameNotifier::stolen, -EEXIST);
	EXPECT_EQ(RenameNotifier::stolen_old, -EEXIST);
	RenameNotifier::thief = nullptr;
	EXPECT_TRUE(is_called(a.ib(), "after"));
	EXPECT_EQ(RenameNotifier::asked, 2u);
	ib_device *found = ib_device_get_by_name("after");
	EXPECT_EQ(found, a.ib());
	if (found)
		ib_device_put(found);
	EXPECT_EQ(ib_device_get_by_name("no-notifier"), nullptr);
	EXPECT_EQ(ib_set_rename_notifier(nullptr), 0);
	EXPECT_EQ(c.add("no-notifier"), 0);
}

/*
 * Devices that are not shared belong to one network namespace. After a move all clients are called
 * to add the device again, including one that refused it before.
 */
void lock_14_device_moved_to_a_namespace_is_added_to_all_clients_again(kern::kunit::Test &test)
{
	constexpr u64 other = 7;
	Fresh fresh;
	FakeDeviceOwner device;
	ASSERT_EQ(device.add(), 0);
	One::answer = -EOPNOTSUPP;
	ASSERT_EQ(ib_register_client(&One::client), 0);
	ASSERT_EQ(ib_register_client(&Two::client), 0);
	diary.count.store_relaxed(0);

	EXPECT_TRUE(ib_devices_are_shared());
	EXPECT_TRUE(ib_device_in_net(device.ib(), other));
	EXPECT_EQ(ib_move_device(device.ib(), KERN_NET_INITIAL, other), -EOPNOTSUPP);
	EXPECT_EQ(ib_share_devices(false), 0);
	EXPECT_FALSE(ib_device_in_net(device.ib(), other));
	EXPECT_EQ(ib_move_device(device.ib(), other, KERN_NET_INITIAL), -ENODEV);
	EXPECT_EQ(diary.count.load_relaxed(), 0u);

	One::answer = 0;
	EXPECT_EQ(ib_move_device(device.ib(), KERN_NET_INITIAL, other), 0);
	EXPECT_TRUE(diary.is(0, 'r', &Two::client, device.ib()));
	EXPECT_TRUE(diary.is(1, 'a', &One::client, device.ib()));
	EXPECT_TRUE(diary.is(2, 'a', &Two::client, device.ib()));
	EXPECT_EQ(diary.count.load_relaxed(), 3u);
	EXPECT_TRUE(ib_device_in_net(device.ib(), other));
	EXPECT_FALSE(ib_device_in_net(device.ib(), KERN_NET_INITIAL));
	const u32 index = ib_device_index(device.ib());
	EXPECT_TRUE(ib_device_get_from(index, KERN_NET_INITIAL) == nullptr);
	ib_device *found = ib_device_get_from(index, other);
	EXPECT_EQ(found, device.ib());
	if (found)
		ib_device_put(found);

	EXPECT_EQ(ib_share_devices(true), 0);
	ib_unregister_client(&Two::client);
	ib_unregister_client(&One::client);
}

/*
 * A device that has been removed, or has never been registered, cannot be referenced, while its
 * memory still exists.
 */
void lock_09_removed_device_cannot_be_referenced(kern::kunit::Test &test)
{
	Fresh fresh;
	FakeDeviceOwner device;
	EXPECT_FALSE(ib_device_try_get(device.ib()));
	ASSERT_EQ(device.add(), 0);
	EXPECT_TRUE(ib_device_try_get(device.ib()));
	ib_device_put(device.ib());
	device.remove();
	EXPECT_FALSE(ib_device_try_get(device.ib()));
}

/*
 * A device with an unknown type, or without mandatory parts, is not registered, and no client sees
 * it.
 */
void invalid_device_is_not_registered_or_shown_to_clients(kern::kunit::Test &test)
{
	Fresh fresh;
	fixture::Observer observer;
	ASSERT_EQ(ib_register_client(&One::client), 0);
	{
		FakeDeviceOwner device;
		device->ib.ops.query_device = [](ib_device *, ib_device_attr *, ib_udata *) {
			return -EIO;
		};
		EXPECT_EQ(device.add(), -EIO);
		device->ib.ops.poll_cq = nullptr;
		EXPECT_EQ(device.add(), -EINVAL);
	}
	{
		FakeDeviceOwner none(0), many(255);
		EXPECT_EQ(none.add(), -EINVAL);
		EXPECT_EQ(many.add(), -EINVAL);
	}
	ib_unregister_client(&One::client);
	EXPECT_EQ(diary.count.load_relaxed(), 0u);
}

} // namespace

KUNIT_SUITE(core_registry,
	    KUNIT_CASE(lock_08_client_callbacks_can_register_clients_and_find_devices),
	    KUNIT_CASE(lock_09_device_can_be_queried_in_client_callbacks),
	    KUNIT_CASE(lock_10_leaked_event_handler_is_reported),
	    KUNIT_CASE(lock_11_add_of_a_new_client_is_called_for_each_existing_device),
	    KUNIT_CASE(lock_11_new_device_is_added_to_existing_clients),
	    KUNIT_CASE(lock_11_client_remove_callbacks_run_in_reverse_order_of_add),
	    KUNIT_CASE(lock_11_client_is_not_called_again_after_a_failed_add),
	    KUNIT_CASE(lock_09_removed_device_cannot_be_referenced),
	    KUNIT_CASE(device_gets_the_lowest_free_number_of_its_name_pattern),
	    KUNIT_CASE(device_rename_reserves_both_names_until_it_is_finished),
	    KUNIT_CASE(lock_14_device_moved_to_a_namespace_is_added_to_all_clients_again),
	    KUNIT_CASE(invalid_device_is_not_registered_or_shown_to_clients));
