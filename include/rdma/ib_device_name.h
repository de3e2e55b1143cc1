/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Names of devices, which user space may change: udev's rules for stable names do. Whoever keeps a
 * device knows it by its address or number; a name is for people, and read when it is shown.
 */
#pragma once
#include <rdma/ib_verbs.h>

RDMA_C_BEGIN

/**
 * struct ib_name_viewer - who shows devices by their names
 * @rename: shows a device by another name, if it shows it at all, and returns 0. The device has
 * that name already, and loses it again upon an error; the former one is nobody's until this
 * returns. One that is beginning or ceasing to be shown is shown, or not: the viewer waits. May
 * sleep; one call at a time, and none after the viewer was taken back
 */
struct ib_name_viewer {
	int (*rename)(struct ib_device *device, const char *name);
};

/**
 * ib_set_name_viewer - have a say in new names of devices
 * @viewer: stays, until NULL is set
 *
 * Context: process. Return: 0, or -EBUSY while another has it.
 */
RDMA_MUST_CHECK int ib_set_name_viewer(const struct ib_name_viewer *viewer);

/**
 * ib_rename_device - give a device another name
 * @device: a registered one, by ib_device_try_get()
 * @name: printable, without blanks, slashes and percent signs, and neither . nor ..
 *
 * Context: process. Return: 0, also if it is its name; -EINVAL for a name that cannot be, -EEXIST
 * for one that another device has, -ENOMEM.
 */
RDMA_MUST_CHECK int ib_rename_device(struct ib_device *device, const char *name);

/**
 * ib_copy_device_name - the name that a device has at this moment
 * @device: a registered one
 * @name: where it goes
 *
 * The name in the device is for the log: read while it changes, it is half of each.
 * Context: process.
 */
void ib_copy_device_name(const struct ib_device *device, char name[IB_DEVICE_NAME_MAX]);

RDMA_C_END
