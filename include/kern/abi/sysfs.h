/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Directories and files in sysfs. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct device;
struct kern_sysfs_attribute;
struct kobject;

struct kern_sysfs_file {
	/* Into a page of PAGE_SIZE bytes: how many, or a negative errno. */
	int (*show)(struct kern_sysfs_file *file, char *page);
	/* NULL for a file that is only read. text is terminated. 0 or a negative errno. */
	int (*store)(struct kern_sysfs_file *file, const char *text, size_t size);
	void *context;
	/* While it is there. */
	struct kern_sysfs_attribute *attribute;
	struct kobject *directory;
};

/*
 * The device's own directory; NULL as the parent of one stands for none. It stays as long as the
 * device.
 */
struct kobject *kern_sysfs_device(struct device *device);
/* NULL without memory, or where the name is taken. */
struct kobject *kern_sysfs_directory(const char *name, struct kobject *parent);
/* Empty by now. */
void kern_sysfs_remove_directory(struct kobject *directory);
/*
 * 0 or a negative errno. name: stays. Readable by all; what can be stored is writable by its owner.
 */
int kern_sysfs_add(struct kern_sysfs_file *file, const char *name, struct kobject *directory);
/* Waits for running reads. */
void kern_sysfs_remove(struct kern_sysfs_file *file);
/* As vsnprintf(), within a page that holds `used` bytes already: how many it holds then. */
int kern_sysfs_print(char *page, int used, const char *format, __builtin_va_list args);

KERN_C_END
