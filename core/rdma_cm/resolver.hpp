// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the interface by which the RDMA CM looks up IP addresses. The kernel's interfaces, routes
 * and neighbours answer the lookups (kernel_resolver.hpp); in tests, the test answers them.
 */
#pragma once

#include "address.hpp"

namespace rdma_cm
{

/*
 * An interface, with the attributes of the port if it is an InfiniBand interface (RFC 4391,
 * sections 4 and 9.1.1). Of an Ethernet interface, only the GID is set: it begins with the MAC
 * address, like an RNIC's.
 */
struct Interface {
	u64 net = KERN_NET_INITIAL; /* number of the network namespace */
	u32 index = 0;
	bool ethernet = false;
	ib_gid gid{};
	u16 pkey = 0;
	ib_gid broadcast{};
};

/*
 * All functions are called in process context, and may sleep. `net` is the network namespace in
 * which the information is looked up.
 */
class Resolver
{
public:
	/* Returns the caller's network namespace, or the initial one. It is held until leave(). */
	virtual kern_net *enter(bool of_caller) = 0;
	virtual void leave(kern_net &net) = 0;
	/* Returns a number that no other namespace has or will have; 0 for the initial one. */
	virtual u64 number_of(kern_net &net) = 0;
	/*
	 * Returns the interface that has the address. Errors: EADDRNOTAVAIL; ENODEV if it is
	 * neither an InfiniBand nor an Ethernet interface.
	 */
	virtual kern::Result<Interface> owner(kern_net &net, const Address &address) = 0;
	/*
	 * Returns the interface through which an address is reached. `source`: the local address,
	 * which is filled in if it is "any". Errors: those of the routing tables; ENODEV.
	 */
	virtual kern::Result<Interface> route(kern_net &net, const Address &to,
					      Address &source) = 0;
	/*
	 * Returns the GID of a neighbour. Errors: EAGAIN while the address is being resolved;
	 * retry_resolutions() is called when it may have been. On Ethernet, the RNIC itself
	 * resolves the address, and this returns the GID of the interface.
	 */
	virtual kern::Result<ib_gid> neighbour(kern_net &net, const Address &to,
					       const Interface &interface) = 0;
	/*
	 * Returns the interface at which a request arrived, in any namespace. Errors: ENODEV,
	 * EHOSTUNREACH.
	 */
	virtual kern::Result<Interface> incoming(const ib_gid &gid, u16 pkey, const Address &to,
						 const Address &peer) = 0;
	/*
	 * Like incoming(), for the RNIC that has the GID. Errors: ENODEV; EADDRNOTAVAIL if the
	 * interface does not have the address.
	 */
	virtual kern::Result<Interface> incoming_ethernet(const ib_gid &gid, const Address &to) = 0;
	/*
	 * local_ports(): the range of ephemeral ports. may_use_low_ports(): whether the caller may
	 * use ports below 1024. v6only(): whether the IPv6 "any" address excludes IPv4.
	 */
	virtual void local_ports(kern_net &net, u16 &first, u16 &last) = 0;
	virtual bool may_use_low_ports(kern_net &net) = 0;
	virtual bool v6only(kern_net &net) = 0;

protected:
	~Resolver() = default;
};

/*
 * Called when a neighbour may have been resolved in the namespace with this number. Context: any.
 */
void retry_resolutions(u64 net);
/* Called when an interface may have moved to another port. Context: any. */
void check_interfaces();

} // namespace rdma_cm
