// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Converts between rdma_cm's structures and those of the ABI. All functions can be called in any
 * context.
 */
#pragma once
#include <kern/result.hpp>
#include <rdma/rdma_cm.h>
#include "abi.hpp"

namespace rdma_ucm
{

/* Returns the size of the addresses of a family; 0 for an unknown family. */
size_t size_of(u16 family);
/* Converts an address, which must have exactly this size. Errors: EINVAL. */
kern::Result<rdma_sockaddr> address_of(const abi::Storage &given, size_t size);
/* Converts an IP address. Errors: EINVAL. */
kern::Result<rdma_sockaddr> address_of(const abi::Ip &given);
/* Converts an address, and fills the rest with zeroes. Returns the size of the address. */
u16 show(const rdma_sockaddr &address, abi::Storage &shown);
/* Converts as much of an address as fits; an IP address fits completely. */
void show(const rdma_sockaddr &address, abi::Ip &shown);

/*
 * Convert the parameters of a connection. `valid` is ignored in both directions, and the length of
 * the private data is unchanged.
 */
rdma_conn_param param_of(const abi::ConnParam &given);
void show(const rdma_conn_param &param, abi::ConnParam &shown);
void show(const rdma_ud_param &param, abi::UdParam &shown);
void show(const sa_path_rec &path, abi::PathRecord &shown);
void show(const ib_qp_attr &attr, int mask, abi::QpAttr &shown);

} // namespace rdma_ucm
