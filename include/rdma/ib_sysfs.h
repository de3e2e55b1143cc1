/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares a function that tests whether user space can find a device in /sys/class/infiniband. */
#pragma once
#include <rdma/ib_verbs.h>

RDMA_C_BEGIN

/**
 * ib_sysfs_shows - test whether a device is in /sys/class/infiniband
 * @device: a registered device
 *
 * For clients that give user space access to a device. Programs find it by its entry there. The
 * entry is complete before add is called for any client of a module that calls this function, and
 * stays until after remove. It does not exist if there was no memory for it.
 *
 * Context: any. Return: true if the device has an entry.
 */
bool ib_sysfs_shows(struct ib_device *device);

RDMA_C_END
