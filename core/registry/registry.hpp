// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Devices, clients, and which client has been added to which device (LOCK-08 … LOCK-12).
 *
 * Clients are numbered in the order of their registration, and a device remembers the number of the
 * last client that was added to it. One task at a time, the device's worker, makes all calls of add
 * and remove for the device, and it continues until no client is missing. So a registration that
 * finds a worker leaves the work to it, and no lock is held while a client is called: the callback
 * may use the whole midlayer, including further registrations. For lockdep the worker holds
 * Registry::workers_.
 *
 * If memory runs out, one registration fails as a whole: that of the client if it has not returned
 * yet, otherwise that of the device.
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
	/* ib_register_client() waits for its devices, and returns this. */
	bool registering = false;
	int status = 0;
	/* Calls of add that have not returned yet. */
	unsigned int calls = 0;
	/* Its devices, in the order of add. */
	kern::List<registry::Pair, &registry::Pair::client_node> pairs;
	kern::ListNode node;
};

struct ib_device_registry {
	explicit ib_device_registry(ib_device &d) : device(d), events(d) {}

	ib_device &device;
	/* Numbered in the order of registration; never reused. */
	u32 index = 0;
	/* The task that calls clients for this device, 0 for none. */
	unsigned long worker = 0;
	/* All clients up to this number have been added. */
	unsigned long last_client = 0;
	/* Able to work, and not leaving: it may be found. */
	bool usable = false;
	bool leaving = false;
	/* ib_register_device() waits for its clients, and returns this. */
	bool registering = true;
	int status = 0;
	/* Its clients, in the order of add. */
	kern::List<registry::Pair, &registry::Pair::device_node> pairs;
	/* Indexed by the client's number: ib_get_client_data() takes no lock. */
	kern::XArray<registry::Pair> by_client;
	/* The network namespace that it belongs to; changed by its worker. */
	kern::Atomic<u64> net{KERN_NET_INITIAL};
	/* ib_device_try_get(); the registration itself is the first. */
	kern::Atomic<unsigned int> users{1};
	registry::EventQueue events;
	kern::ListNode node;
};

namespace registry
{

/*
 * Returns true if the name is valid in the file system: printable, without a slash, with a % only
 * in %d, of which there are at most @most_numbers, and with space for the numbers.
 */
bool valid_name(const char *name, unsigned int most_numbers);

class Registry
{
public:
	/*
	 * Gives the device its name and a place, with the caller as its worker: it is not visible
	 * yet, but its events are queued. Then either add_client_contexts() or remove_device().
	 * Errors: EEXIST.
	 */
	kern::Result<> enlist(kern::Owned<ib_device_registry> device, const char *name);
	/* Adds the device to all clients. Errors, for a device that is being registered: ENOMEM. */
	kern::Result<> add_client_contexts(ib_device_registry &device);
	/*
	 * Returns when no client uses the device, no references are left, and no event handler
	 * runs. Frees the state. Returns false without any change if called from a callback for
	 * this device, where it would wait for itself.
	 */
	bool remove_device(ib_device_registry &device);
	void put_device(ib_device_registry &device);
	/*
	 * Moves a device from one network namespace to another; no client has it in between.
	 * Errors: ENODEV if it is not in `from`, or leaving; EDEADLK from within a callback for
	 * this device.
	 */
	kern::Result<> move_device(ib_device_registry &device, u64 from, u64 to);
	/*
	 * The first of the registered, in the order of their numbers, for which matches(device) is
	 * true; with a reference.
	 */
	template<class Matches>
	ib_device *find_device(Matches matches)
	{
		kern::Guard guard(lock_);
		for (ib_device_registry &device : devices_)
			if (device.usable && matches(device)) {
				// The count of a usable device is not zero, and it cannot stop
				// being usable under the lock.
				device.users.fetch_add(1);
				return &device.device;
			}
		return nullptr;
	}

	/*
	 * Renames a device to a valid name, which it already has while the notifier is called; the
	 * notifier may refuse it. May sleep. Errors: EEXIST, and those of the notifier.
	 */
	kern::Result<> rename(ib_device &device, const char *name);
	/* IB_DEVICE_NAME_MAX bytes. */
	void copy_name(const ib_device &device, char *name);
	/* Sets the notifier, or none. May sleep. Errors: EBUSY if another one is set. */
	kern::Result<> set_rename_notifier(const ib_rename_notifier *notifier);

	/* True if tasks of a network namespace may use a device. Context: any. */
	bool accessible(const ib_device_registry &device, u64 net) const
	{
		return shared() || device.net.load_relaxed() == net;
	}
	bool shared() const { return shared_.load_relaxed(); }
	/* Errors: EBUSY while there are other network namespaces than the initial one. */
	kern::Result<> set_shared(bool shared);
	/* Network namespaces, except the initial one, are created and destroyed. */
	void net_begun();
	void net_ended(u64 net);

	/* Adds all devices to the client. Errors: ENOMEM. */
	kern::Result<> add_client(kern::Owned<ib_client_registry> client);
	/* False, with nothing changed, from within a callback, where it may wait for itself. */
	bool remove_client(ib_client_registry &client);

private:
	/*
	 * Waits until the condition holds. It is checked under the lock, and may change the state
	 * when it holds.
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
	/* All workers of devices, for lockdep. */
	kern::Ownership workers_{KERN_LOCK_CLASS("registry.worker")};
	kern::List<ib_device_registry, &ib_device_registry::node> devices_ KERN_GUARDED_BY(lock_);
	kern::List<ib_client_registry, &ib_client_registry::node> clients_ KERN_GUARDED_BY(lock_);
	unsigned long last_number_ KERN_GUARDED_BY(lock_) = 0;
	u32 next_index_ KERN_GUARDED_BY(lock_) = 0;
	/* Previous name of the device that is being renamed. */
	const char *former_name_ KERN_GUARDED_BY(lock_) = nullptr;

	/* Number of network namespaces except the initial one. */
	unsigned long nets_ KERN_GUARDED_BY(lock_) = 0;
	/* Tasks of all network namespaces may use all devices. */
	kern::Atomic<bool> shared_{true};

	/* Serializes renaming; held while the notifier is called. */
	kern::Mutex names_lock_{KERN_LOCK_CLASS("registry.names")};
	const ib_rename_notifier *rename_notifier_ KERN_GUARDED_BY(names_lock_) = nullptr;
};

extern kern::Static<Registry> instance;

} // namespace registry
