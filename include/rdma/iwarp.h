/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Devices that speak iWARP (RFC 5040): those whose node_type is RDMA_NODE_RNIC. What
 * rdma/ib_verbs.h says of all devices holds for them, but:
 *
 * - a QP is of type RC, and its peer is the TCP connection's: ib_modify_qp() takes access flags, the port and the numbers of RDMA reads, and no
 *   address, P_Key, PSN or timer. RESET, INIT and RTR are steps of being idle; SQD closes a connection, SQE terminates it; from neither a way
 *   leads back to RTS, and from RTS and SQE none to RESET. ib_modify_qp_is_ok() is InfiniBand's table;
 * - there are no address vectors, and so no address handles, and no MADs;
 * - tables of GIDs and P_Keys may be empty, and query_gid and query_pkey are obligatory only for a
 *   port that states entries.
 *
 * A driver that has no get_port_immutable has ports of RDMA_CORE_PORT_IWARP. Valid in C and C++.
 */
#pragma once
#include <rdma/ib_verbs.h>

/* Of ib_port_immutable::core_cap_flags. */
#define RDMA_CORE_CAP_PROT_IWARP 0x00400000
#define RDMA_CORE_PORT_IWARP (RDMA_CORE_CAP_PROT_IWARP | RDMA_CORE_CAP_IW_CM)

static inline bool rdma_protocol_iwarp(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_PROT_IWARP);
}

static inline bool rdma_cap_iw_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IW_CM);
}
