// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Conversions between rdma_cm's structures and those of the ABI. Context: any. */
#pragma once
#include <kern/result.hpp>
#include <rdma/rdma_cm.h>
#include "abi.hpp"

namespace rdma_ucm
{

/* Bytes of an address of a family; 0 of one that there is not. */
size_t size_of(u16 family);
/* The address of just that size. Errors: EINVAL. */
kern::Result<rdma_sockaddr> address_of(const abi::Storage &said, size_t size);
/* An IP address. Errors: EINVAL. */
kern::Result<rdma_sockaddr> address_of(const abi::Ip &said);
/* Its size; zero behind it. */
u16 show(const rdma_sockaddr &address, abi::Storage &shown);
/* As much as there is room for: of an IP address all. */
void show(const rdma_sockaddr &address, abi::Ip &shown);

/* Both without validity of `valid`; private data are said to be as long as they were. */
rdma_conn_param param_of(const abi::ConnParam &said);
void show(const rdma_conn_param &param, abi::ConnParam &shown);
void show(const rdma_ud_param &param, abi::UdParam &shown);
void show(const sa_path_rec &path, abi::PathRecord &shown);
void show(const ib_qp_attr &attr, int mask, abi::QpAttr &shown);

} // namespace rdma_ucm
