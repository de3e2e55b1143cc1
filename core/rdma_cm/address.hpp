// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Socket addresses: their types, and the mapping of ports to service IDs (IBA A11.2). Pure
 * functions for any context.
 */
#pragma once

#include <kern/abi/ip.h>
#include <kern/result.hpp>
#include <rdma/rdma_cm.h>

namespace rdma_cm
{

using Address = rdma_sockaddr;

static_assert(sizeof(rdma_sockaddr_in) == 16 && sizeof(rdma_sockaddr_in6) == 28 &&
	      sizeof(rdma_sockaddr_ib) == 48);

constexpr bool is_family(u16 family)
{
	return family == RDMA_AF_INET || family == RDMA_AF_INET6 || family == RDMA_AF_IB;
}

/* "Any" of a family, port 0. */
Address any_of(u16 family);
/* The host alone. */
void set_loopback(Address &address);
bool is_any(const Address &address);
bool is_loopback(const Address &address);
bool is_link_local(const Address &address);
/* True for addresses of no single host, which a request must not contain. */
bool is_group_or_broadcast(const Address &address);
/* The addresses are equal in all fields of the family. */
bool same(const Address &a, const Address &b);
/* Returns true if the hosts are equal; ports are ignored. */
bool same_host(const Address &a, const Address &b);
u16 port_of(const Address &address);
/* For AF_IB, all bits of the service ID are compared afterwards. */
void set_port(Address &address, rdma_ucm_port_space space, u16 port);

constexpr u64 service_of(rdma_ucm_port_space space, u16 port)
{
	return u64{static_cast<u32>(space)} << 16 | port;
}
u64 service_of(rdma_ucm_port_space space, const Address &address);
/*
 * Returns the port space of an address for an ID of space @own: @own itself; for AF_IB, the space
 * in the service ID, which must be @own unless that is RDMA_PS_IB. Errors: EPROTONOSUPPORT.
 */
kern::Result<rdma_ucm_port_space> space_of(rdma_ucm_port_space own, const Address &address);
/* The partition that an address of AF_IB names; 0: none. */
u16 pkey_of(const Address &address);

/* Converts an IPv4 or IPv6 address for the kernel. */
kern_ip_address to_ip(const Address &address);
/* The host, with the port that `address` has. */
void set_host(Address &address, const kern_ip_address &host);

/* Begins the private data of REQ and SIDR_REQ (A11.4.3). */
struct IpHeader {
	u8 version = 0;    /* major and minor */
	u8 ip_version = 0; /* the version is in the upper four bits */
	ib::be16 source_port;
	u8 source[16]{};
	u8 destination[16]{};
};
static_assert(sizeof(IpHeader) == RDMA_CM_IP_HEADER_SIZE);

/* The ends must have one family, which is not AF_IB. */
IpHeader make_header(const Address &source, const Address &destination);

/* The ends that a request names, from the receiver's side: `local` has the port of the service. */
struct Ends {
	Address local{}, peer{};
	/* Bytes of the private data that are not the consumer's. */
	u8 header = 0;
};
/*
 * Errors: EINVAL for an unsupported version (IBA A11.4.3.1). `data` has at least the size of the
 * header. The family is 0 if the request contains no IP addresses.
 */
kern::Result<Ends> read_header(const void *data, rdma_ucm_port_space space, u16 port);

} // namespace rdma_cm
