/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares the structures and functions that device_class.c and node.c share. */
#pragma once
#include <linux/device.h>
#include <linux/spinlock.h>
#include <kern/abi/device_class.h>

struct kern_class_attribute;

/*
 * Must be the first member of its structure. Dropping the last reference to the device frees the
 * structure.
 */
struct kern_class_device {
	struct device native;
	struct kern_class *class;
	/*
	 * A copy of the name for the functions of files: when a device is renamed, the kernel frees
	 * the old name without waiting for readers of files. kobject_get_path() still reads the
	 * kernel's own name if root writes to uevent during a rename. This applies to every device
	 * that can be renamed, and a driver cannot fix it.
	 */
	spinlock_t name_lock;
	char name[64];
	struct kern_class_attribute *attributes;
	struct attribute_group group;
	const struct attribute_group *groups[2];
};

/*
 * Initialises a device that is not in the system yet. From then on it is freed by put_device(),
 * even if this function fails.
 */
int kern_class_device_init(struct kern_class_device *device, struct kern_class *class,
			   struct device *parent, const char *name,
			   const struct kern_class_file *files, unsigned int count);
