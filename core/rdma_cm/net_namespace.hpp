// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Represents a network namespace to which IDs belong. An ID binds to addresses and ports in the
 * namespace of its creator. A listener only receives requests that arrive at an interface of its
 * namespace.
 */
#pragma once

#include <kern/atomic.hpp>
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/ref.hpp>

#include "resolver.hpp"

namespace rdma_cm
{

class NetNamespaces;

/* The part of an ID that is used while it waits for a neighbour. */
struct NeighbourWaiter {
	kern::ListNode waiting_node;
};

/* Exists, and holds the kernel's namespace, as long as an ID belongs to it. */
class NetNamespace : public kern::RefCounted<NetNamespace>
{
public:
	~NetNamespace();
	NetNamespace(const NetNamespace &) = delete;
	NetNamespace &operator=(const NetNamespace &) = delete;

	kern_net &native() const { return *native_; }

	const u64 number;
	/*
	 * Protected by the manager's lock. The arrays are indexed by port space: the port that was
	 * allocated last, and the number of ports that programs use.
	 */
	u16 last_ports[4]{};
	u32 ports_of_programs[4]{};
	kern::List<NeighbourWaiter, &NeighbourWaiter::waiting_node> waiting;
	/*
	 * Protected by the lock of NetNamespaces: a neighbour in this namespace may have been
	 * resolved since take_retries() was called.
	 */
	bool retry = false;

private:
	friend class NetNamespaces;
	NetNamespace(NetNamespaces &list, kern_net *native);

	NetNamespaces &list_;
	kern_net *const native_;
	kern::ListNode node_;
};

class NetNamespaces
{
public:
	explicit NetNamespaces(Resolver &resolver) : resolver_(resolver) {}

	/* Returns the caller's namespace, or the initial one. Context: process. Errors: ENOMEM. */
	kern::Result<kern::Ref<NetNamespace>> enter(bool of_caller);

	/*
	 * Records that the IDs of a namespace must query their neighbours again; returns false if
	 * no ID belongs to it. Context: any.
	 */
	bool request_retry(u64 number);
	/*
	 * Calls `body` for each namespace for which request_retry() has been called since the last
	 * time. `body` must not sleep.
	 */
	template<class Body>
	void take_retries(Body body)
	{
		kern::Guard guard(lock_);
		for (NetNamespace &one : list_)
			if (std::exchange(one.retry, false))
				body(one);
	}

private:
	friend class NetNamespace;

	Resolver &resolver_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("rdma_cm.net_namespaces")};
	kern::List<NetNamespace, &NetNamespace::node_> list_ KERN_GUARDED_BY(lock_);
};

} // namespace rdma_cm
