// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Source of information about IP addresses: the kernel's interfaces, routes and neighbours, or a
 * test.
 */
#pragma once

#include "address.hpp"

namespace rdma_cm
{

/*
 * Attributes of the port of an InfiniBand interface (RFC 4391, 4. and 9.1.1). An Ethernet interface
 * only has its address at the beginning of its GID, as an RNIC has.
 */
struct Interface {
	u64 net = KERN_NET_INITIAL; /* the number of its network namespace */
	u32 index = 0;
	bool ethernet = false;
	ib_gid gid{};
	u16 pkey = 0;
	ib_gid broadcast{};
};

/* All of it in process context; it may sleep. `net` is the network namespace that is asked. */
class Resolver
{
public:
	/* The caller's network namespace, or the initial one, held until leave(). */
	virtual kern_net *enter(bool of_caller) = 0;
	virtual void leave(kern_net &net) = 0;
	/* A number that no other namespace has or will have; the initial one's is 0. */
	virtual u64 number_of(kern_net &net) = 0;
	/*
	 * The interface that has the address. Errors: EADDRNOTAVAIL; ENODEV if it is neither
	 * InfiniBand's nor Ethernet's.
	 */
	virtual kern::Result<Interface> owner(kern_net &net, const Address &address) = 0;
	/*
	 * Finds the interface for an address. `source`: the local address, which is filled in if it
	 * is "any". Errors: those of the routing tables; ENODEV.
	 */
	virtual kern::Result<Interface> route(kern_net &net, const Address &to,
					      Address &source) = 0;
	/*
	 * Errors: EAGAIN while the address is being resolved; retry_resolutions() is called when
	 * the answer may have arrived. On Ethernet, the RNIC itself resolves it, and this returns
	 * the interface.
	 */
	virtual kern::Result<ib_gid> neighbour(kern_net &net, const Address &to,
					       const Interface &interface) = 0;
	/* The interface that a request came to, in any namespace. Errors: ENODEV, EHOSTUNREACH. */
	virtual kern::Result<Interface> incoming(const ib_gid &gid, u16 pkey, const Address &to,
						 const Address &peer) = 0;
	/*
	 * Does the same for the RNIC that has the GID. Errors: ENODEV; EADDRNOTAVAIL if it does not
	 * have the address.
	 */
	virtual kern::Result<Interface> incoming_ethernet(const ib_gid &gid, const Address &to) = 0;
	/*
	 * Ports to choose from; whether the caller may have those below 1024; whether IPv6's "any"
	 * leaves out IPv4.
	 */
	virtual void local_ports(kern_net &net, u16 &first, u16 &last) = 0;
	virtual bool may_use_low_ports(kern_net &net) = 0;
	virtual bool v6only(kern_net &net) = 0;

protected:
	~Resolver() = default;
};

/* A neighbour may be known now in the namespace of that number. Context: any. */
void retry_resolutions(u64 net);
/* An interface may be on another port now. Context: any. */
void check_interfaces();

} // namespace rdma_cm
