/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares port counters that a module other than the driver provides, such as the communication
 * manager. While they are registered, the module that shows ports in sysfs has a directory for them
 * in each port's directory. The two modules may be loaded in any order.
 */
#pragma once
#include <rdma/ib_verbs.h>

/**
 * struct ib_port_counters - directories of counters, each with the same files
 * @directories: names of the directories
 * @directory_count: number of directories
 * @names: names of the files in each directory
 * @count: number of files in each directory
 * @has: returns whether a port of a registered device has the counters. Called in any context
 * @read: reads the current value of a counter, by the index of its directory and of its file.
 * Called in process context for a registered device; add of the module's client may not have begun,
 * or remove may have returned. Returns 0, or a negative errno, which the reader gets
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
 * struct ib_port_counters_notifier - a module that shows counters of ports
 * @show: starts to show counters. With NULL, it stops showing them, and nothing reads them any more
 * when it returns. Called in process context, one call at a time
 */
struct ib_port_counters_notifier {
	void (*show)(const struct ib_port_counters *counters);
};

RDMA_C_BEGIN

/**
 * ib_set_port_counters - register counters of ports
 * @counters: the counters, which the caller keeps; NULL to unregister them. When this has returned,
 * nothing reads the previous ones
 *
 * Context: process, without locks that reading takes. Return: 0; -EBUSY if others are registered.
 */
RDMA_MUST_CHECK int ib_set_port_counters(const struct ib_port_counters *counters);

/**
 * ib_set_port_counters_notifier - register the notifier of counters
 * @notifier: the notifier, which the caller keeps, and which is called at once if counters are
 * registered; NULL to unregister it. When this has returned, the previous one is not called any
 * more
 *
 * Context: process, without locks that @notifier takes. Return: 0; -EBUSY if another is registered.
 */
RDMA_MUST_CHECK int ib_set_port_counters_notifier(const struct ib_port_counters_notifier *notifier);

RDMA_C_END
