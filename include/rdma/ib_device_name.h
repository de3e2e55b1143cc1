/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Declares the renaming of devices. User space may change device names; for example, udev's rules
 * for stable names do. A module that holds a device refers to it by its address or number, and
 * reads the name when it displays it.
 */
#pragma once
#include <rdma/ib_verbs.h>

RDMA_C_BEGIN

/**
 * struct ib_rename_notifier - a module that shows devices by their names
 * @rename: called in process context, one call at a time; may sleep. If the module shows the
 * device, shows it by its new name. Returns 0 or a negative errno. The device has the new name
 * already, and gets the previous one again after an error; until this returns, no other device gets
 * the previous one. If the notifier is just starting or stopping to show the device, it completes
 * that first
 */
struct ib_rename_notifier {
	int (*rename)(struct ib_device *device, const char *name);
};

/**
 * ib_set_rename_notifier - register the notifier of names
 * @notifier: the notifier, which the caller keeps; NULL to unregister it. When this has returned,
 * the previous notifier is not called any more
 *
 * Context: process, not from the notifier's rename. Return: 0; -EBUSY if another notifier is
 * registered.
 */
RDMA_MUST_CHECK int ib_set_rename_notifier(const struct ib_rename_notifier *notifier);

/**
 * ib_rename_device - change the name of a device
 * @device: a registered device, kept by ib_device_try_get()
 * @name: the new name: printable, without blanks, slashes and percent signs, neither . nor ..,
 * shorter than IB_DEVICE_NAME_MAX
 *
 * Context: process. Return: 0, also if the device has that name; -EINVAL for a name that is not
 * allowed; -EEXIST for one that another device has; the errors of the notifier's rename.
 */
RDMA_MUST_CHECK int ib_rename_device(struct ib_device *device, const char *name);

/**
 * ib_copy_device_name - copy the current name of a device
 * @device: a registered device
 * @name: filled in
 *
 * ib_device.name itself should be used only for the log: a reader may see a mixture of both names
 * while it changes.
 *
 * Context: process.
 */
void ib_copy_device_name(const struct ib_device *device, char name[IB_DEVICE_NAME_MAX]);

RDMA_C_END
