// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Conversions between rdma_cm's structures and those of the ABI. Context: any. */
#pragma once
#include <kern/result.hpp>
#include <rdma/rdma_cm.h>
#include "abi.hpp"

namespace rdma_ucm
{

/* Returns the size of an address of a family; 0 for an unknown family. */
size_t size_of(u16 family);
/* The address of just that size. Errors: EINVAL. */
kern::Result<rdma_sockaddr> address_of(const abi::Storage &said, size_t size);
/* An IP address. Errors: EINVAL. */
kern::Result<rdma_sockaddr> address_of(const abi::Ip &said);
/* Returns the size of the address; fills the rest with zeroes. */
u16 show(const rdma_sockaddr &address, abi::Storage &shown);
/* Copies as much as fits; an IP address fits completely. */
void show(const rdma_sockaddr &address, abi::Ip &shown);

/* Both ignore `valid`. The length of private data is kept. */
rdma_conn_param param_of(const abi::ConnParam &said);
void show(const rdma_conn_param &param, abi::ConnParam &shown);
void show(const rdma_ud_param &param, abi::UdParam &shown);
void show(const sa_path_rec &path, abi::PathRecord &shown);
void show(const ib_qp_attr &attr, int mask, abi::QpAttr &shown);

} // namespace rdma_ucm
