/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Devices as user space finds them, in /sys/class/infiniband. */
#pragma once
#include <rdma/ib_verbs.h>

RDMA_C_BEGIN

/**
 * ib_sysfs_shows - whether a device is in /sys/class/infiniband
 * @device: a registered one
 *
 * For clients that give user space a way to a device: programs find it by its entry there, which is
 * complete from before the add of any client of a module that calls this, and stays until after its
 * remove. It is not there if there was no memory for it.
 * Context: any. Return: whether it is.
 */
bool ib_sysfs_shows(struct ib_device *device);

RDMA_C_END
