/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the midlayer's cache of the state, LID, subnet manager, GIDs and P_Keys of ports. The
 * functions take no lock and work in any context, on registered devices. The values are at least as
 * new as the last event that was reported to handlers (EVENT-02). All values except GIDs are in
 * host order.
 *
 * Linux: differs. GIDs are copied, not reference-counted, and there are functions for the LID and
 * the subnet manager's LID.
 */
#pragma once
#include <rdma/ib_verbs.h>

/**
 * struct ib_port_cache - a consistent copy of a port's values (IBA 14.2.5.6)
 * @subnet_prefix: upper half of the default GID, host order
 * @state: enum ib_port_state
 * @active_mtu: enum ib_mtu; 0 until the link is up
 * @lid: base LID, host order; 0 if the port has none
 * @sm_lid: LID of the subnet manager, host order; 0 if unknown
 * @lmc: number of low bits of LIDs that select a path, 0 to 7
 * @sm_sl: service level for packets to the subnet manager, 0 to 15
 * @subnet_timeout: longest time that a packet takes through the subnet, 4.096 us * 2^n
 * @generation: increases with each change of a value here or in the tables
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
 * ib_get_cached_port - get a consistent copy of a port's values, without its tables (IBA 14.2.5.6)
 * @device: the device
 * @port_num: the port
 * @port: filled in
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_port(struct ib_device *device, u32 port_num,
				       struct ib_port_cache *port);

/**
 * ib_get_cached_port_state - get a port's state (IBA 14.2.5.6)
 * @device: the device
 * @port_num: the port
 * @port_state: filled in
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_port_state(struct ib_device *device, u32 port_num,
					     enum ib_port_state *port_state);

/**
 * ib_get_cached_lmc - get the number of low bits of LIDs that select a path to a port (IBA 4.1.3)
 * @device: the device
 * @port_num: the port
 * @lmc: filled in, 0 to 7
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_lmc(struct ib_device *device, u32 port_num, u8 *lmc);

/**
 * ib_get_cached_lid - get a port's LID (IBA 4.1.3)
 * @device: the device
 * @port_num: the port
 * @lid: filled in, host order; 0 if it has none
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_lid(struct ib_device *device, u32 port_num, u16 *lid);

/**
 * ib_get_cached_sm_lid - get the subnet manager's LID (IBA 14.2.5.6)
 * @device: the device
 * @port_num: the port
 * @sm_lid: filled in, host order; 0 if none is known
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_sm_lid(struct ib_device *device, u32 port_num, u16 *sm_lid);

/**
 * ib_get_cached_subnet_prefix - get the upper half of a port's GIDs (IBA 4.1.1)
 * @device: the device
 * @port_num: the port
 * @subnet_prefix: filled in, host order
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_subnet_prefix(struct ib_device *device, u32 port_num,
						u64 *subnet_prefix);

/**
 * rdma_query_gid - get an entry of the GID table (IBA 4.1.1)
 * @device: the device
 * @port_num: the port
 * @index: the entry, from 0
 * @gid: filled in; all zero for an entry that is not in use
 *
 * Context: any. Return: 0; -EINVAL for a port or an entry that does not exist.
 */
RDMA_MUST_CHECK int rdma_query_gid(struct ib_device *device, u32 port_num, int index,
				   union ib_gid *gid);

/**
 * ib_find_cached_gid_by_port - find the index of a GID (IBA 4.1.1)
 * @device: the device
 * @gid: the GID to find
 * @port_num: the port
 * @index: filled in
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist; -ENOENT if the port does not
 * have it.
 */
RDMA_MUST_CHECK int ib_find_cached_gid_by_port(struct ib_device *device, const union ib_gid *gid,
					       u32 port_num, u16 *index);

/**
 * ib_find_cached_gid - find the port and index of a GID (IBA 4.1.1)
 * @device: the device
 * @gid: the GID to find
 * @port_num: filled in
 * @index: filled in
 *
 * Context: any. Return: 0; -ENOENT if no port has it.
 */
RDMA_MUST_CHECK int ib_find_cached_gid(struct ib_device *device, const union ib_gid *gid,
				       u32 *port_num, u16 *index);

/**
 * ib_get_cached_pkey - get an entry of the P_Key table (IBA 10.9)
 * @device: the device
 * @port_num: the port
 * @index: the entry, from 0
 * @pkey: filled in, host order; the low 15 bits are zero for an entry that is not in use
 *
 * Context: any. Return: 0; -EINVAL for a port or an entry that does not exist.
 */
RDMA_MUST_CHECK int ib_get_cached_pkey(struct ib_device *device, u32 port_num, int index,
				       u16 *pkey);

/**
 * ib_find_cached_pkey - find the index of a P_Key, preferably with full membership (IBA 10.9)
 * @device: the device
 * @port_num: the port
 * @pkey: the P_Key to find, host order; its membership bit is ignored
 * @index: filled in
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist; -ENOENT if the port does not
 * have it.
 */
RDMA_MUST_CHECK int ib_find_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey,
					u16 *index);

/**
 * ib_find_exact_cached_pkey - find the index of a P_Key with the same membership bit (IBA 10.9)
 * @device: the device
 * @port_num: the port
 * @pkey: the P_Key to find, host order
 * @index: filled in
 *
 * Context: any. Return: 0; -EINVAL for a port that does not exist; -ENOENT if the port does not
 * have it.
 */
RDMA_MUST_CHECK int ib_find_exact_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey,
					      u16 *index);

RDMA_C_END
