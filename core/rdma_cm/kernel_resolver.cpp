// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "kernel_resolver.hpp"

#include <utility>

namespace rdma_cm
{
namespace
{

/*
 * Returns the GID at the end of an InfiniBand link address (RFC 4391, section 4). In the GID of the
 * broadcast group, bytes 4 and 5 are the P_Key.
 */
ib_gid gid_of(const u8 *link_address)
{
	ib_gid gid;
	__builtin_memcpy(gid.raw, link_address + 4, sizeof(gid.raw));
	return gid;
}

kern::Result<Interface> read(const kern_ip_interface &native)
{
	Interface interface;
	interface.net = native.net;
	interface.index = native.index;
	if (native.ethernet) {
		interface.ethernet = true;
		__builtin_memcpy(interface.gid.raw, native.address, 6);
		return interface;
	}
	if (!native.infiniband)
		return kern::Error{-ENODEV};
	interface.gid = gid_of(native.address);
	interface.broadcast = gid_of(native.broadcast);
	interface.pkey =
		static_cast<u16>(interface.broadcast.raw[4] << 8 | interface.broadcast.raw[5]);
	return interface;
}

} // namespace

kern::Result<> KernelResolver::start()
{
	watcher_ = kern_ip_watch([](void *, u64 net) { retry_resolutions(net); },
				 [](void *) { check_interfaces(); }, nullptr);
	return kern::check(watcher_ ? 0 : -ENOMEM);
}

void KernelResolver::stop()
{
	if (watcher_)
		kern_ip_unwatch(std::exchange(watcher_, nullptr));
}

kern::Result<Interface> KernelResolver::owner(kern_net &net, const Address &address)
{
	const kern_ip_address ip = to_ip(address);
	kern_ip_interface found;
	KERN_TRY_ERRNO(kern_ip_owner(&net, &ip, &found));
	return read(found);
}

kern::Result<Interface> KernelResolver::route(kern_net &net, const Address &to, Address &source)
{
	const kern_ip_address ip = to_ip(to);
	kern_ip_address from = to_ip(source);
	kern_ip_interface found;
	KERN_TRY_ERRNO(kern_ip_route(&net, &ip, &from, &found));
	const Interface outgoing = KERN_TRY(read(found));
	set_host(source, from);
	return outgoing;
}

kern::Result<ib_gid> KernelResolver::neighbour(kern_net &net, const Address &to,
					       const Interface &interface)
{
	if (interface.ethernet)
		return interface.gid;
	const kern_ip_address ip = to_ip(to);
	kern_ip_interface by{};
	u8 link_address[KERN_LINK_ADDRESS_SIZE];
	by.index = interface.index;
	KERN_TRY_ERRNO(kern_ip_neighbour(&net, &ip, &by, link_address));
	return gid_of(link_address);
}

kern::Result<Interface> KernelResolver::incoming(const ib_gid &gid, u16 pkey, const Address &to,
						 const Address &peer)
{
	const kern_ip_address here = to_ip(to), there = to_ip(peer);
	kern_ip_interface found;
	KERN_TRY_ERRNO(kern_ip_incoming(gid.raw, pkey, &here, &there, &found));
	return read(found);
}

kern::Result<Interface> KernelResolver::incoming_ethernet(const ib_gid &gid, const Address &to)
{
	const kern_ip_address here = to_ip(to);
	kern_ip_interface found;
	KERN_TRY_ERRNO(kern_ip_incoming_ethernet(gid.raw, &here, &found));
	return read(found);
}

void KernelResolver::local_ports(kern_net &net, u16 &first, u16 &last)
{
	kern_ip_local_ports(&net, &first, &last);
}

bool KernelResolver::may_use_low_ports(kern_net &net)
{
	return kern_ip_may_use_low_ports(&net);
}

bool KernelResolver::v6only(kern_net &net)
{
	return kern_ip_v6only(&net);
}

} // namespace rdma_cm
