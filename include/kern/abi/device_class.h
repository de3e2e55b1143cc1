/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares device classes, which appear in /sys/class, and the devices in them. */
#pragma once
#include <kern/abi/sysfs.h>

KERN_C_BEGIN

struct kern_class;
struct kern_class_device;
struct module;

struct kern_class_options {
	/*
	 * The contents of the class's file abi_version; NULL for no such file. The text must stay
	 * valid.
	 */
	const char *abi_version;
	/* Permissions of the nodes of devices in /dev/infiniband. */
	unsigned short node_mode;
	/* Adds NAME=… to the uevents of devices, as udev's rules for InfiniBand devices expect. */
	bool reports_name;
};

/*
 * A file in the directory of a device, which exists as long as the device. All users can read it.
 * It is writable if it has a store method.
 */
struct kern_class_file {
	const char *name;
	struct kern_sysfs_file *file;
};

/* Returns an error pointer: -ENOMEM, or -EEXIST if the name is used. @name must stay valid. */
struct kern_class *kern_class_create(const char *name, const struct kern_class_options *options);
/* All devices of the class must have been removed. */
void kern_class_destroy(struct kern_class *class_);

/*
 * Creates a device of a class, with its files. User space is notified by
 * kern_class_device_announce(). parent may be NULL. Returns an error pointer for ENOMEM and EEXIST.
 */
struct kern_class_device *kern_class_device_create(struct kern_class *class_, struct device *parent,
						   const char *name,
						   const struct kern_class_file *files,
						   unsigned int count);
void kern_class_device_announce(struct kern_class_device *device);
/*
 * Renames a device that was announced and is not being removed. Calls must not run in parallel.
 * Sends a uevent. The name has at most 63 characters. Errors: EEXIST, ENOMEM.
 */
int kern_class_device_rename(struct kern_class_device *device, const char *name);
/* Waits for running reads of the device's files. */
void kern_class_device_remove(struct kern_class_device *device);
struct device *kern_class_device_native(struct kern_class_device *device);

KERN_C_END
