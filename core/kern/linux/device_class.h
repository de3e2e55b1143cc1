/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declarations shared by the C files of class devices and of their nodes. */
#pragma once
#include <linux/device.h>
#include <linux/spinlock.h>
#include <kern/abi/device_class.h>

struct kern_class_attribute;

/* Must be the first member of its structure, which the last reference to the device frees. */
struct kern_class_device {
	struct device native;
	struct kern_class *class;
	/*
	 * The kernel frees a name when the next is there, and readers of files do not wait for it:
	 * they get this copy. kobject_get_path() still reads the kernel's own, when root has an
	 * event sent by writing to uevent while it is renamed; that holds for every device whose
	 * name may change, and a driver cannot fix it.
	 */
	spinlock_t name_lock;
	char name[64];
	struct kern_class_attribute *attributes;
	struct attribute_group group;
	const struct attribute_group *groups[2];
};

/*
 * The device is not yet in the system. From now on it is freed by put_device(), even if this
 * function fails.
 */
int kern_class_device_init(struct kern_class_device *device, struct kern_class *class,
			   struct device *parent, const char *name,
			   const struct kern_class_file *files, unsigned int count);
