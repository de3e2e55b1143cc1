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
 * ib_get_hw_stats - what the hardware counts of a port or of the device
 * @device: the device
 * @port_num: as for ib_hw_counters()
 * @first: of the names, the first that is wanted
 * @count: how many
 * @values: so many, in the order of the names
 *
 * All who ask share one reading: the device is asked by one of them at a time, for all that it
 * counts, and not again before its answer, an error too, is older than the lifespan says.
 *
 * Context: process. Return: 0; -EINVAL for more than there are; -EOPNOTSUPP if nothing is counted;
 * the driver's errors.
 */
RDMA_MUST_CHECK int ib_get_hw_stats(struct ib_device *device, u32 port_num, u32 first, u32 count,
				    u64 *values);

/**
 * ib_get_hw_stats_lifespan - how old a reading of ib_get_hw_stats() may be
 * @device: the device
 * @port_num: as for ib_hw_counters()
 *
 * Context: process. Return: milliseconds; -EOPNOTSUPP if nothing is counted.
 */
RDMA_MUST_CHECK int ib_get_hw_stats_lifespan(struct ib_device *device, u32 port_num);

/**
 * ib_set_hw_stats_lifespan - how old a reading of ib_get_hw_stats() may be from now on
 * @device: the device
 * @port_num: as for ib_hw_counters()
 * @lifespan_ms: at most 10,000, at first 10; with 0 the device is asked each time
 *
 * Context: process. Return: 0; -EINVAL; -EOPNOTSUPP if nothing is counted.
 */
RDMA_MUST_CHECK int ib_set_hw_stats_lifespan(struct ib_device *device, u32 port_num,
					     u32 lifespan_ms);

RDMA_C_END
