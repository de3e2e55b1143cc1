// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Handles socket addresses: determines their type, and maps ports to service IDs (IBA A11.2). All
 * functions are pure and can be called in any context.
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

/* Returns the unspecified ("any") address of a family with port 0. */
Address any_of(u16 family);
/* Sets the host to the loopback address; the port is unchanged. */
void set_loopback(Address &address);
bool is_any(const Address &address);
bool is_loopback(const Address &address);
bool is_link_local(const Address &address);
/*
 * Returns true for addresses that are not those of a single host; a request must not contain them.
 */
bool is_group_or_broadcast(const Address &address);
/* Returns true if the addresses are equal in all fields that their family has. */
bool same(const Address &a, const Address &b);
/* Returns true if the hosts are equal; ports are ignored. */
bool same_host(const Address &a, const Address &b);
u16 port_of(const Address &address);
/* For AF_IB, also sets the mask so that all bits of the service ID are significant. */
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
/* Returns the P_Key in an AF_IB address; 0 if there is none. */
u16 pkey_of(const Address &address);

/* Converts an IPv4 or IPv6 address for the kernel. */
kern_ip_address to_ip(const Address &address);
/* Sets the host of `address`; its port is unchanged. */
void set_host(Address &address, const kern_ip_address &host);

/* The header at the beginning of the private data of REQ and SIDR_REQ (IBA A11.4.3). */
struct IpHeader {
	u8 version = 0;    /* major and minor */
	u8 ip_version = 0; /* the version is in the upper four bits */
	ib::be16 source_port;
	u8 source[16]{};
	u8 destination[16]{};
};
static_assert(sizeof(IpHeader) == RDMA_CM_IP_HEADER_SIZE);

/* Both addresses must have the same family, which must not be AF_IB. */
IpHeader make_header(const Address &source, const Address &destination);

/* The two addresses in a request, from the receiver's side: `local` has the port of the service. */
struct Ends {
	Address local{}, peer{};
	/* Size of the header in the private data, which is not passed to the consumer. */
	u8 header = 0;
};
/*
 * Reads the addresses in the private data, which must be at least as long as the header. The family
 * of the result is 0 if the request contains no IP addresses. Errors: EINVAL for an unsupported
 * version (IBA A11.4.3.1).
 */
kern::Result<Ends> read_header(const void *data, rdma_ucm_port_space space, u16 port);

} // namespace rdma_cm
