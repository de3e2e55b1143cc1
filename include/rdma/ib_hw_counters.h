/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the hardware counters of a device, in addition to those of the performance agents of its
 * ports. Drivers provide the counters by the methods hw_counters and get_hw_stats, and other
 * modules display them.
 *
 * Linux: differs by a table of names and one sample for all readers, instead of
 * alloc_hw_device_stats and alloc_hw_port_stats.
 */
#pragma once
#include <rdma/ib_verbs.h>

/**
 * struct rdma_hw_counters - counters of a port, or of a device
 * @names: name of each, as displayed; they stay valid while the device is registered
 * @count: number of counters
 */
struct rdma_hw_counters {
	const char *const *names;
	u32 count;
};

RDMA_C_BEGIN

/**
 * ib_hw_counters - get the names of hardware counters
 * @device: a registered device
 * @port_num: a port; 0 for the counters of the whole device
 *
 * Context: any. Return: the names, which are the same while the device is registered; NULL if the
 * device has no such counters, or no such port.
 */
const struct rdma_hw_counters *ib_hw_counters(struct ib_device *device, u32 port_num);

/**
 * ib_get_hw_stats - read hardware counters of a port or of the device
 * @device: a registered device
 * @port_num: as for ib_hw_counters()
 * @first: index of the first counter to read, from 0
 * @count: number of counters to read
 * @values: filled in, @count values in the order of the names
 *
 * All readers share one sample. The driver is called by one reader at a time, for all counters, and
 * not again before the sample, or its error, is older than the lifespan.
 *
 * Context: process. Return: 0; -EINVAL for counters that do not exist; -EOPNOTSUPP if the device or
 * the port has no counters; the command errors of rdma/ib_verbs.h.
 */
RDMA_MUST_CHECK int ib_get_hw_stats(struct ib_device *device, u32 port_num, u32 first, u32 count,
				    u64 *values);

/**
 * ib_get_hw_stats_lifespan - get the age up to which ib_get_hw_stats() uses a sample
 * @device: a registered device
 * @port_num: as for ib_hw_counters()
 *
 * Context: process. Return: milliseconds, 0 to 10,000; -EOPNOTSUPP if the device or the port has no
 * counters.
 */
RDMA_MUST_CHECK int ib_get_hw_stats_lifespan(struct ib_device *device, u32 port_num);

/**
 * ib_set_hw_stats_lifespan - set the age up to which ib_get_hw_stats() uses a sample
 * @device: a registered device
 * @port_num: as for ib_hw_counters()
 * @lifespan_ms: milliseconds, 0 to 10,000; initially 10. With 0, each read queries the device
 *
 * Context: process. Return: 0; -EINVAL for more than 10,000; -EOPNOTSUPP if the device or the port
 * has no counters.
 */
RDMA_MUST_CHECK int ib_set_hw_stats_lifespan(struct ib_device *device, u32 port_num,
					     u32 lifespan_ms);

RDMA_C_END
