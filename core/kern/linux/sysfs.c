// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <linux/device.h>
#include <linux/export.h>
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <kern/abi/sysfs.h>

/*
 * Implements include/kern/abi/sysfs.h. The kernel's attribute is allocated separately from the
 * file, so that C++ need not know its size.
 */
struct kern_sysfs_attribute {
	struct kobj_attribute native;
	struct kern_sysfs_file *file;
};

static ssize_t show(struct kobject *directory, struct kobj_attribute *native, char *page)
{
	struct kern_sysfs_file *file =
		container_of(native, struct kern_sysfs_attribute, native)->file;

	return file->show(file, page);
}

static ssize_t store(struct kobject *directory, struct kobj_attribute *native, const char *text,
		     size_t size)
{
	struct kern_sysfs_file *file =
		container_of(native, struct kern_sysfs_attribute, native)->file;
	int status = file->store(file, text, size);

	return status < 0 ? status : size;
}

struct kobject *kern_sysfs_device(struct device *device)
{
	return &device->kobj;
}
EXPORT_SYMBOL_GPL(kern_sysfs_device);

struct kobject *kern_sysfs_directory(const char *name, struct kobject *parent)
{
	return kobject_create_and_add(name, parent);
}
EXPORT_SYMBOL_GPL(kern_sysfs_directory);

void kern_sysfs_remove_directory(struct kobject *directory)
{
	/* The directory is removed from the tree immediately, even if it is still open. */
	kobject_del(directory);
	kobject_put(directory);
}
EXPORT_SYMBOL_GPL(kern_sysfs_remove_directory);

int kern_sysfs_add(struct kern_sysfs_file *file, const char *name, struct kobject *directory)
{
	struct kern_sysfs_attribute *attribute = kzalloc(sizeof(*attribute), GFP_KERNEL);
	int status;

	if (!attribute)
		return -ENOMEM;
	sysfs_attr_init(&attribute->native.attr);
	attribute->native.attr.name = name;
	attribute->native.attr.mode = file->store ? 0644 : 0444;
	attribute->native.show = show;
	attribute->native.store = file->store ? store : NULL;
	attribute->file = file;
	status = sysfs_create_file(directory, &attribute->native.attr);
	if (status) {
		kfree(attribute);
		return status;
	}
	file->attribute = attribute;
	file->directory = directory;
	return 0;
}
EXPORT_SYMBOL_GPL(kern_sysfs_add);

void kern_sysfs_remove(struct kern_sysfs_file *file)
{
	sysfs_remove_file(file->directory, &file->attribute->native.attr);
	kfree(file->attribute);
	file->attribute = NULL;
}
EXPORT_SYMBOL_GPL(kern_sysfs_remove);

int kern_sysfs_print(char *page, int used, const char *format, va_list args)
{
	return used + vscnprintf(page + used, PAGE_SIZE - used, format, args);
}
EXPORT_SYMBOL_GPL(kern_sysfs_print);
