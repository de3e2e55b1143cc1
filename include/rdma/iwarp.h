/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Describes devices that use iWARP (RFC 5040). Their node_type is RDMA_NODE_RNIC. rdma/ib_verbs.h
 * applies to them, except:
 *
 * - A QP is of type RC, and its peer is the peer of the TCP connection. ib_modify_qp() takes access
 *   flags, the port and the numbers of RDMA reads, and no address, P_Key, PSN or timer. RESET, INIT
 *   and RTR are idle states; SQD closes a connection, SQE terminates it. No transition leads from
 *   SQD or SQE to RTS, and none from RTS or SQE to RESET. ib_modify_qp_is_ok() has InfiniBand's
 *   table.
 * - There are no address vectors, no address handles and no MADs.
 * - Tables of GIDs and P_Keys may be empty. query_gid and query_pkey are mandatory only for a port
 *   whose tables have entries.
 *
 * A driver that has no get_port_immutable has ports of RDMA_CORE_PORT_IWARP. The header is valid in
 * C and C++.
 */
#pragma once
#include <rdma/ib_verbs.h>

/* Flags of ib_port_immutable::core_cap_flags. */
#define RDMA_CORE_CAP_PROT_IWARP 0x00400000
#define RDMA_CORE_PORT_IWARP (RDMA_CORE_CAP_PROT_IWARP | RDMA_CORE_CAP_IW_CM)

/**
 * rdma_protocol_iwarp - test for a port that uses iWARP
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if the port's protocol is iWARP.
 */
static inline bool rdma_protocol_iwarp(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_PROT_IWARP);
}

/**
 * rdma_cap_iw_cm - test for a port whose connections rdma/iw_cm.h makes
 * @device: a registered device
 * @port_num: a valid port
 *
 * Context: any. Return: true if the port has this capability.
 */
static inline bool rdma_cap_iw_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_port_has(device, port_num, RDMA_CORE_CAP_IW_CM);
}
