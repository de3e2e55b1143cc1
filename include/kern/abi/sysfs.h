/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares directories and files in sysfs. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct device;
struct kern_sysfs_attribute;
struct kobject;

struct kern_sysfs_file {
	/*
	 * Writes the contents into a page of PAGE_SIZE bytes. Returns the number of bytes, or a
	 * negative errno.
	 */
	int (*show)(struct kern_sysfs_file *file, char *page);
	/* NULL for a read-only file. @text is null-terminated. Returns 0 or a negative errno. */
	int (*store)(struct kern_sysfs_file *file, const char *text, size_t size);
	void *context;
	/* Valid while the entry exists. */
	struct kern_sysfs_attribute *attribute;
	struct kobject *directory;
};

/*
 * Returns the directory of a device, which exists as long as the device. In the functions below,
 * NULL as parent means the root.
 */
struct kobject *kern_sysfs_device(struct device *device);
/* Returns NULL if there is no memory or the name is used. */
struct kobject *kern_sysfs_directory(const char *name, struct kobject *parent);
/* The directory must be empty. */
void kern_sysfs_remove_directory(struct kobject *directory);
/*
 * Returns 0 or a negative errno. @name must stay valid. All users can read the file. Its owner can
 * write it if it has a store method.
 */
int kern_sysfs_add(struct kern_sysfs_file *file, const char *name, struct kobject *directory);
/* Waits for running reads. */
void kern_sysfs_remove(struct kern_sysfs_file *file);
/*
 * Formats like vsnprintf() into a page that already contains `used` bytes. Returns the new number
 * of bytes.
 */
int kern_sysfs_print(char *page, int used, const char *format, __builtin_va_list args);

KERN_C_END
