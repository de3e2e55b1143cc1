/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What the midlayer remembers of a device's ports: state, LID, SM, GIDs, P_Keys. Read without a
 * lock, from any context, on registered devices; as new as the last event that handlers were told
 * of (EVENT-02). All values are in host order but for the GIDs. Every function returns 0, or
 * -EINVAL for a port or index that the device does not have, or what its comment adds.
 *
 * Departure from Linux: GIDs are copied, not referenced, so nothing has to be put back; and LID and
 * SM address can be asked for as well.
 */
#pragma once
#include <rdma/ib_verbs.h>

/**
 * struct ib_port_cache - a port at one moment
 * @subnet_prefix: upper half of the default GID
 * @state: enum ib_port_state
 * @active_mtu: enum ib_mtu; 0 as long as the link has not come up
 * @lid: 0 as long as there is none
 * @sm_lid: the subnet manager's; 0 as long as it is unknown
 * @lmc: number of path bits
 * @sm_sl: service level towards the SM
 * @subnet_timeout: 4.096 us * 2^n
 * @generation: grows with each change of anything here or in the tables
 */
struct ib_port_cache {
	u64 subnet_prefix;
	enum ib_port_state state;
	enum ib_mtu active_mtu;
	u16 lid;
	u16 sm_lid;
	u8 lmc;
	u8 sm_sl;
	u8 subnet_timeout;
	u32 generation;
};

RDMA_C_BEGIN

/**
 * ib_get_cached_port - everything but the tables, of one moment
 * @device: the device
 * @port_num: the port
 * @port: filled in
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_port(struct ib_device *device, u32 port_num,
				       struct ib_port_cache *port);

/**
 * ib_get_cached_port_state - a port's state
 * @device: the device
 * @port_num: the port
 * @port_state: filled in
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_port_state(struct ib_device *device, u32 port_num,
					     enum ib_port_state *port_state);

/**
 * ib_get_cached_lmc - how many low bits of a LID the port takes for its own
 * @device: the device
 * @port_num: the port
 * @lmc: filled in
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_lmc(struct ib_device *device, u32 port_num, u8 *lmc);

/**
 * ib_get_cached_lid - a port's LID
 * @device: the device
 * @port_num: the port
 * @lid: filled in, host order; 0 if it has none
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_lid(struct ib_device *device, u32 port_num, u16 *lid);

/**
 * ib_get_cached_sm_lid - the subnet manager's LID
 * @device: the device
 * @port_num: the port
 * @sm_lid: filled in, host order; 0 if none is known
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_sm_lid(struct ib_device *device, u32 port_num, u16 *sm_lid);

/**
 * ib_get_cached_subnet_prefix - upper half of a port's GIDs
 * @device: the device
 * @port_num: the port
 * @subnet_prefix: filled in, host order
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_subnet_prefix(struct ib_device *device, u32 port_num,
						u64 *subnet_prefix);

/**
 * rdma_query_gid - an entry of the GID table
 * @device: the device
 * @port_num: the port
 * @index: the entry
 * @gid: filled in; all zero for an entry that is not in use
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int rdma_query_gid(struct ib_device *device, u32 port_num, int index,
				   union ib_gid *gid);

/**
 * ib_find_cached_gid_by_port - the index of a GID
 * @device: the device
 * @gid: what to look for
 * @port_num: the port
 * @index: filled in
 *
 * Context: any. Return: 0, -EINVAL or -ENOENT.
 */
RDMA_MUST_CHECK int ib_find_cached_gid_by_port(struct ib_device *device, const union ib_gid *gid,
					       u32 port_num, u16 *index);

/**
 * ib_find_cached_gid - the port and index of a GID
 * @device: the device
 * @gid: what to look for
 * @port_num: filled in
 * @index: filled in
 *
 * Context: any. Return: 0 or -ENOENT.
 */
RDMA_MUST_CHECK int ib_find_cached_gid(struct ib_device *device, const union ib_gid *gid,
				       u32 *port_num, u16 *index);

/**
 * ib_get_cached_pkey - an entry of the P_Key table
 * @device: the device
 * @port_num: the port
 * @index: the entry
 * @pkey: filled in; the low 15 bits are zero for an entry that is not in use
 *
 * Context: any. Return: 0 or -EINVAL.
 */
RDMA_MUST_CHECK int ib_get_cached_pkey(struct ib_device *device, u32 port_num, int index,
				       u16 *pkey);

/**
 * ib_find_cached_pkey - the index of a P_Key, full membership preferred
 * @device: the device
 * @port_num: the port
 * @pkey: what to look for, the membership bit aside
 * @index: filled in
 *
 * Context: any. Return: 0, -EINVAL or -ENOENT.
 */
RDMA_MUST_CHECK int ib_find_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey,
					u16 *index);

/**
 * ib_find_exact_cached_pkey - the index of a P_Key, membership bit included
 * @device: the device
 * @port_num: the port
 * @pkey: what to look for
 * @index: filled in
 *
 * Context: any. Return: 0, -EINVAL or -ENOENT.
 */
RDMA_MUST_CHECK int ib_find_exact_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey,
					      u16 *index);

RDMA_C_END
