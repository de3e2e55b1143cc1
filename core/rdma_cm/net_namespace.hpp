// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A network namespace that ids belong to: an id binds to addresses and ports of the namespace of
 * its creator, and requests reach a listener by an interface of the listener's namespace only.
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

/* The part of an id by which it waits for a neighbour. */
struct NeighbourWaiter {
	kern::ListNode waiting_node;
};

/* It is there, and held, as long as an id belongs to it. */
class NetNamespace : public kern::RefCounted<NetNamespace>
{
public:
	~NetNamespace();
	NetNamespace(const NetNamespace &) = delete;
	NetNamespace &operator=(const NetNamespace &) = delete;

	kern_net &native() const { return *native_; }

	const u64 number;
	/*
	 * Protected by the manager's lock. In the order of its services: the ports that were given
	 * last, and how many ports programs have.
	 */
	u16 last_ports[4]{};
	u32 ports_of_programs[4]{};
	kern::List<NeighbourWaiter, &NeighbourWaiter::waiting_node> waiting;
	/* Protected by the list's lock: a neighbour of this namespace has been resolved since. */
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

	/* The caller's, or the initial one. Context: process. Errors: ENOMEM. */
	kern::Result<kern::Ref<NetNamespace>> enter(bool of_caller);

	/*
	 * Notes that ids of a namespace have to look for their neighbours again; false if no id
	 * belongs to it. Context: any.
	 */
	bool request_retry(u64 number);
	/* Calls `body` for each that this was noted for since the last call; it must not sleep. */
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
