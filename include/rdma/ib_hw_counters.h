/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a device's hardware counts beside the performance agents of its ports: for whoever shows it
 * to people, and for the drivers whose methods say it.
 */
#pragma once
#include <rdma/ib_verbs.h>

/**
 * struct rdma_hw_counters - counters of a port, or of a device
 * @names: of each, as people are told; they stay while the device is registered
 * @count: how many
 */
struct rdma_hw_counters {
	const char *const *names;
	u32 count;
};

RDMA_C_BEGIN

/**
 * ib_hw_counters - what the hardware counts
 * @device: the device
 * @port_num: of a port; 0 for what is counted of the whole device
 *
 * Context: any. Return: always the same while the device is registered; NULL if nothing is counted
 * of that.
 */
const struct rdma_hw_counters *ib_hw_counters(struct ib_device *device, u32 port_num);

/**
 * ib_get_hw_stats - all that the hardware counts of a port or of the device, as it is now
 * @device: the device
 * @port_num: as for ib_hw_counters()
 * @values: so many as there are names, in their order
 *
 * Context: process. Return: 0; -EOPNOTSUPP if nothing is counted; the driver's errors.
 */
int ib_get_hw_stats(struct ib_device *device, u32 port_num, u64 *values);

RDMA_C_END
