// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Holds the registered devices and clients, and records which clients have been added to which
 * devices (LOCK-08 to LOCK-12).
 *
 * Clients are numbered in the order of their registration, and a device remembers the number of the
 * last client that was added to it. One task at a time, the device's worker, makes all calls of add
 * and remove for the device, and it continues until no client is missing. So a registration that
 * finds a worker leaves the work to it, and no lock is held while a client is called: the callback
 * may use the whole midlayer, including further registrations. For lockdep, a device's worker is a
 * lock, Registry::workers_, which the worker holds and other tasks wait for.
 *
 * If memory runs out, one registration fails: the client's registration if it has not returned yet,
 * otherwise the device's registration.
 *
 * Locks: Registry::lock_ protects everything here except events, is taken only in process context
 * and never held during a callback; Registry::names_lock_ is held outside of it while a device is
 * renamed, and the module that shows devices takes its own lock inside; EventQueue::handlers_lock_
 * is held while handlers run, outside of the queue's own lock. The two hierarchies do not nest.
 */
#pragma once
#include <kern/abi/net.h>
#include <kern/atomic.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/wait_queue.hpp>
#include <kern/xarray.hpp>
#include <rdma/ib_device_name.h>
#include "events.hpp"

namespace registry
{

/* A client that was added to a device: from before add until after remove. */
struct Pair {
	Pair(ib_device_registry &d, ib_client_registry &c) : device(d), client(c) {}

	ib_device_registry &device;
	ib_client_registry &client;
	kern::Atomic<void *> data{nullptr};
	kern::ListNode device_node;
	kern::ListNode client_node;
};

} // namespace registry

struct ib_client_registry {
	explicit ib_client_registry(ib_client &c) : client(c) {}

	ib_client &client;
	unsigned long number = 0;
	bool leaving = false;
	/*
	 * True while ib_register_client() waits for the devices. status: the result that it
	 * returns.
	 */
	bool registering = false;
	int status = 0;
	/* Number of calls of add that have not returned yet. */
	unsigned int calls = 0;
	/* The client's devices, in the order of add. */
	kern::List<registry::Pair, &registry::Pair::client_node> pairs;
	kern::ListNode node;
};

struct ib_device_registry {
	explicit ib_device_registry(ib_device &d) : device(d), events(d) {}

	ib_device &device;
	/* Device number. Numbers are assigned in the order of registration and never reused. */
	u32 index = 0;
	/* The context of the device's worker, or 0. */
	unsigned long worker = 0;
	/* Number of the last client: all clients up to it have been added. */
	unsigned long last_client = 0;
	/* The device is registered and not being removed, so it can be found. */
	bool usable = false;
	bool leaving = false;
	/*
	 * True while ib_register_device() waits for the clients. status: the result that it
	 * returns.
	 */
	bool registering = true;
	int status = 0;
	/* The device's clients, in the order of add. */
	kern::List<registry::Pair, &registry::Pair::device_node> pairs;
	/* Indexed by client number, so that ib_get_client_data() takes no lock. */
	kern::XArray<registry::Pair> by_client;
	/* The network namespace of the device. Changed by the device's worker. */
	kern::Atomic<u64> net{KERN_NET_INITIAL};
	/* References by ib_device_try_get(). The registration itself holds the first one. */
	kern::Atomic<unsigned int> users{1};
	registry::EventQueue events;
	kern::ListNode node;
};

namespace registry
{

/*
 * Returns true if the name is valid: it consists of printable characters without a slash, contains
 * % only in %d, and %d at most @most_numbers times, and leaves space for the numbers.
 */
bool valid_name(const char *name, unsigned int most_numbers);

class Registry
{
public:
	/*
	 * Assigns the device its name and number, with the caller as its worker. The device is not
	 * visible yet, but its events are queued. The caller must then call add_client_contexts()
	 * or remove_device(). Errors: EEXIST.
	 */
	kern::Result<> enlist(kern::Owned<ib_device_registry> device, const char *name);
	/*
	 * Adds the device to all clients. Errors: ENOMEM, only while the device is being
	 * registered.
	 */
	kern::Result<> add_client_contexts(ib_device_registry &device);
	/*
	 * Removes a device: returns when no client uses it, there are no references, and no event
	 * handler runs. Frees the state. Returns false without any change if called from a callback
	 * for this device, which would wait for itself.
	 */
	bool remove_device(ib_device_registry &device);
	void put_device(ib_device_registry &device);
	/*
	 * Moves a device from one network namespace to another. While it is moved, it is removed
	 * from all clients. Errors: ENODEV if it is not in `from`, or being removed; EDEADLK from
	 * within a callback for this device.
	 */
	kern::Result<> move_device(ib_device_registry &device, u64 from, u64 to);
	/*
	 * Returns the first registered device, in the order of device numbers, for which
	 * matches(device) is true, with a reference; nullptr if there is none.
	 */
	template<class Matches>
	ib_device *find_device(Matches matches)
	{
		kern::Guard guard(lock_);
		for (ib_device_registry &device : devices_)
			if (device.usable && matches(device)) {
				// Under the lock the device stays usable, so the count is not 0.
				device.users.fetch_add(1);
				return &device.device;
			}
		return nullptr;
	}

	/*
	 * Renames a device to a valid name. The device already has the new name when the notifier
	 * is called. The notifier may refuse the name. May sleep. Errors: EEXIST, and those of the
	 * notifier.
	 */
	kern::Result<> rename(ib_device &device, const char *name);
	/* Copies the name, IB_DEVICE_NAME_MAX bytes. */
	void copy_name(const ib_device &device, char *name);
	/* Sets the notifier; nullptr removes it. May sleep. Errors: EBUSY if another one is set. */
	kern::Result<> set_rename_notifier(const ib_rename_notifier *notifier);

	/* Returns true if tasks of a network namespace may use a device. Context: any. */
	bool accessible(const ib_device_registry &device, u64 net) const
	{
		return shared() || device.net.load_relaxed() == net;
	}
	bool shared() const { return shared_.load_relaxed(); }
	/* Errors: EBUSY while there are network namespaces other than the initial one. */
	kern::Result<> set_shared(bool shared);
	/* Called when a network namespace, except the initial one, is created or destroyed. */
	void net_begun();
	void net_ended(u64 net);

	/* Adds all devices to the client. Errors: ENOMEM. */
	kern::Result<> add_client(kern::Owned<ib_client_registry> client);
	/* Returns false without any change if called from a callback, which may wait for itself. */
	bool remove_client(ib_client_registry &client);

private:
	/*
	 * Waits until the condition is true. The condition is called with the lock held, and may
	 * change the state when it is true.
	 */
	template<class Condition>
	void wait(Condition condition)
	{
		changed_.wait([&] {
			kern::Guard guard(lock_);
			return condition();
		});
	}
	kern::Result<> call_add(ib_device_registry &device, ib_client_registry &client);
	void call_remove(Pair &pair);
	void remove_clients(ib_device_registry &device);
	void end_client(ib_client_registry &client);
	void note_failure(ib_device_registry &device, ib_client_registry &client, int status)
		KERN_REQUIRES(lock_);
	bool inside_callback() KERN_REQUIRES(lock_);
	bool name_free(const char *name) KERN_REQUIRES(lock_);
	bool choose_name(ib_device &device, const char *pattern) KERN_REQUIRES(lock_);

	kern::SpinLock lock_{KERN_LOCK_CLASS("registry")};
	kern::WaitQueue changed_{KERN_LOCK_CLASS("registry.changed")};
	/* Represents the role of all workers to lockdep. */
	kern::Ownership workers_{KERN_LOCK_CLASS("registry.worker")};
	kern::List<ib_device_registry, &ib_device_registry::node> devices_ KERN_GUARDED_BY(lock_);
	kern::List<ib_client_registry, &ib_client_registry::node> clients_ KERN_GUARDED_BY(lock_);
	unsigned long last_number_ KERN_GUARDED_BY(lock_) = 0;
	u32 next_index_ KERN_GUARDED_BY(lock_) = 0;
	/* Previous name of the device that is being renamed. */
	const char *former_name_ KERN_GUARDED_BY(lock_) = nullptr;

	/* Number of network namespaces except the initial one. */
	unsigned long nets_ KERN_GUARDED_BY(lock_) = 0;
	/* True if tasks of all network namespaces may use all devices. */
	kern::Atomic<bool> shared_{true};

	/* Serialises renaming. Held while the notifier is called. */
	kern::Mutex names_lock_{KERN_LOCK_CLASS("registry.names")};
	const ib_rename_notifier *rename_notifier_ KERN_GUARDED_BY(names_lock_) = nullptr;
};

extern kern::Static<Registry> instance;

} // namespace registry
