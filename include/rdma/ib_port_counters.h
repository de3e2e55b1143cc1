/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Counters of ports that a module other than the driver keeps: the communication manager's. Whoever
 * shows ports to people has them in each port's directory as long as that module says so, whichever
 * of the two came first.
 */
#pragma once
#include <rdma/ib_verbs.h>

/**
 * struct ib_port_counters - directories of counters, each with the same files
 * @directories: their names
 * @directory_count: how many
 * @names: of the files in each
 * @count: how many
 * @has: whether a port of a registered device has them. Context: any
 * @read: one of them, as it is now. Context: process; the device is there, whose client's add may
 * not have begun, or remove be over. 0, or the reader's error
 */
struct ib_port_counters {
	const char *const *directories;
	u32 directory_count;
	const char *const *names;
	u32 count;
	bool (*has)(struct ib_device *device, u32 port);
	int (*read)(struct ib_device *device, u32 port, u32 directory, u32 counter, u64 *value);
};

/**
 * struct ib_port_counters_viewer - who shows them
 * @show: from now on these are to be shown; NULL: none any more, and when it returns nobody reads.
 * Context: process, one at a time
 */
struct ib_port_counters_viewer {
	void (*show)(const struct ib_port_counters *counters);
};

RDMA_C_BEGIN

/**
 * ib_set_port_counters - have counters shown
 * @counters: kept by the caller; NULL to end it, and then nobody reads them when this has returned
 *
 * Context: process, without locks that reading takes. Return: 0; -EBUSY if some are shown.
 */
RDMA_MUST_CHECK int ib_set_port_counters(const struct ib_port_counters *counters);

/**
 * ib_set_port_counters_viewer - show counters
 * @viewer: kept by the caller, and called at once if there are any; NULL to end it, and then it is
 * not called any more when this has returned
 *
 * Context: process, without locks that @viewer takes. Return: 0; -EBUSY if there is one.
 */
RDMA_MUST_CHECK int ib_set_port_counters_viewer(const struct ib_port_counters_viewer *viewer);

RDMA_C_END
