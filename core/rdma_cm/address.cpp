// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "address.hpp"

namespace rdma_cm
{
namespace
{

bool all_zero(const u8 *bytes, std::size_t count)
{
	u8 bits = 0;
	for (std::size_t i = 0; i < count; i++)
		bits |= bytes[i];
	return bits == 0;
}

/* Returns true for ::1, as an address or as a GID. */
bool is_one(const u8 *bytes)
{
	return all_zero(bytes, 15) && bytes[15] == 1;
}

} // namespace

Address any_of(u16 family)
{
	Address address{};
	address.family = family;
	return address;
}

void set_loopback(Address &address)
{
	if (address.family == RDMA_AF_INET) {
		constexpr u8 loopback[] = {127, 0, 0, 1};
		__builtin_memcpy(address.in.addr, loopback, sizeof(loopback));
		return;
	}
	u8 *host = address.family == RDMA_AF_INET6 ? address.in6.addr : address.ib.addr.raw;
	__builtin_memset(host, 0, 16);
	host[15] = 1;
}

bool is_any(const Address &address)
{
	switch (address.family) {
	case RDMA_AF_INET:
		return all_zero(address.in.addr, 4);
	case RDMA_AF_INET6:
		return all_zero(address.in6.addr, 16);
	default:
		return all_zero(address.ib.addr.raw, 16);
	}
}

bool is_loopback(const Address &address)
{
	switch (address.family) {
	case RDMA_AF_INET:
		return address.in.addr[0] == 127;
	case RDMA_AF_INET6:
		return is_one(address.in6.addr);
	default:
		return is_one(address.ib.addr.raw);
	}
}

bool is_link_local(const Address &address)
{
	return address.family == RDMA_AF_INET6 && address.in6.addr[0] == 0xfe &&
	       (address.in6.addr[1] & 0xc0) == 0x80;
}

bool is_group_or_broadcast(const Address &address)
{
	if (address.family == RDMA_AF_INET)
		return (address.in.addr[0] & 0xf0) == 0xe0 ||
		       (address.in.addr[0] & address.in.addr[1] & address.in.addr[2] &
			address.in.addr[3]) == 0xff;
	return (address.family == RDMA_AF_INET6 ? address.in6.addr[0] : address.ib.addr.raw[0]) ==
	       0xff;
}

bool same(const Address &a, const Address &b)
{
	const auto equal = [&](std::size_t size) { return __builtin_memcmp(&a, &b, size) == 0; };
	switch (a.family) {
	case RDMA_AF_INET:
		return equal(sizeof(a.in));
	case RDMA_AF_INET6:
		return equal(sizeof(a.in6));
	default:
		return equal(sizeof(a.ib));
	}
}

bool same_host(const Address &a, const Address &b)
{
	if (a.family != b.family)
		return false;
	switch (a.family) {
	case RDMA_AF_INET:
		return __builtin_memcmp(a.in.addr, b.in.addr, 4) == 0;
	case RDMA_AF_INET6:
		return __builtin_memcmp(a.in6.addr, b.in6.addr, 16) == 0 &&
		       (!is_link_local(a) || a.in6.scope_id == b.in6.scope_id);
	default:
		return __builtin_memcmp(a.ib.addr.raw, b.ib.addr.raw, 16) == 0;
	}
}

u16 port_of(const Address &address)
{
	switch (address.family) {
	case RDMA_AF_INET:
		return address.in.port.value();
	case RDMA_AF_INET6:
		return address.in6.port.value();
	case RDMA_AF_IB:
		return static_cast<u16>(address.ib.sid.value() & address.ib.sid_mask.value());
	default:
		return 0;
	}
}

void set_port(Address &address, rdma_ucm_port_space space, u16 port)
{
	switch (address.family) {
	case RDMA_AF_INET:
		address.in.port = port;
		return;
	case RDMA_AF_INET6:
		address.in6.port = port;
		return;
	default:
		address.ib.sid = service_of(space, port);
		address.ib.sid_mask = ~u64{0};
		return;
	}
}

u64 service_of(rdma_ucm_port_space space, const Address &address)
{
	return address.family == RDMA_AF_IB ? address.ib.sid.value()
					    : service_of(space, port_of(address));
}

/*
 * Determines the port space from the bits of the service ID that the mask selects. The other bits
 * may have any value.
 */
kern::Result<rdma_ucm_port_space> space_of(rdma_ucm_port_space own, const Address &address)
{
	if (address.family != RDMA_AF_IB)
		return own;
	const u64 mask = address.ib.sid_mask.value() & ~u64{0xffff},
		  named = address.ib.sid.value() & mask;
	for (const auto space : {own, RDMA_PS_TCP, RDMA_PS_UDP})
		if ((space == own || own == RDMA_PS_IB) &&
		    named == (service_of(space, u16{0}) & mask))
			return space;
	return kern::Error{-EPROTONOSUPPORT};
}

u16 pkey_of(const Address &address)
{
	return address.family == RDMA_AF_IB ? address.ib.pkey.value() : u16{0};
}

kern_ip_address to_ip(const Address &address)
{
	kern_ip_address ip{};
	ip.v6 = address.family == RDMA_AF_INET6;
	__builtin_memcpy(ip.bytes, ip.v6 ? address.in6.addr : address.in.addr, ip.v6 ? 16 : 4);
	ip.interface = is_link_local(address) ? address.in6.scope_id : 0;
	return ip;
}

void set_host(Address &address, const kern_ip_address &host)
{
	if (host.v6) {
		__builtin_memcpy(address.in6.addr, host.bytes, 16);
		address.in6.scope_id = is_link_local(address) ? host.interface : 0;
	} else {
		__builtin_memcpy(address.in.addr, host.bytes, 4);
	}
}

IpHeader make_header(const Address &source, const Address &destination)
{
	IpHeader header;
	const bool v6 = source.family == RDMA_AF_INET6;
	header.ip_version = v6 ? 0x60 : 0x40;
	header.source_port = port_of(source);
	const auto put = [&](u8(&to)[16], const Address &from) {
		if (v6)
			__builtin_memcpy(to, from.in6.addr, 16);
		else
			__builtin_memcpy(to + 12, from.in.addr, 4);
	};
	put(header.source, source);
	put(header.destination, destination);
	return header;
}

kern::Result<Ends> read_header(const void *data, rdma_ucm_port_space space, u16 port)
{
	IpHeader header;
	__builtin_memcpy(&header, data, sizeof(header));
	Ends ends;
	const auto take = [&](u16 family) {
		ends.local.family = ends.peer.family = family;
		ends.header = sizeof(header);
		for (auto [to, from] : {std::pair{&ends.local, header.destination},
					std::pair{&ends.peer, header.source}}) {
			if (family == RDMA_AF_INET6)
				__builtin_memcpy(to->in6.addr, from, 16);
			else
				__builtin_memcpy(to->in.addr, from + 12, 4);
		}
		set_port(ends.local, space, port);
		set_port(ends.peer, space, header.source_port.value());
	};
	switch (header.ip_version >> 4) {
	case 4:
		take(RDMA_AF_INET);
		break;
	case 6:
		take(RDMA_AF_INET6);
		break;
	default:
		return ends;
	}
	if (header.version != 0)
		return kern::Error{-EINVAL};
	return ends;
}

} // namespace rdma_cm
