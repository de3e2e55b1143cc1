// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements device classes, which appear in /sys/class. */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/version.h>
#include "device_class.h"

struct kern_class {
	struct class *native;
	struct kern_class_options options;
	struct class_attribute_string abi_version;
};

/* The kernel's attribute of a device, and the file to which it belongs. */
struct kern_class_attribute {
	struct device_attribute native;
	struct kern_sysfs_file *file;
};

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define KERN_CLASS_CONST
#else
#define KERN_CLASS_CONST const
#endif

static const struct kern_class_options *options_of(const struct device *native)
{
	return &container_of(native, struct kern_class_device, native)->class->options;
}

static char *node_name(KERN_CLASS_CONST struct device *native, umode_t *mode)
{
	if (mode)
		*mode = options_of(native)->node_mode;
	return kasprintf(GFP_KERNEL, "infiniband/%s", dev_name(native));
}

static int event_text(KERN_CLASS_CONST struct device *native, struct kobj_uevent_env *env)
{
	struct kern_class_device *device = container_of(native, struct kern_class_device, native);
	char name[sizeof(device->name)];

	if (!options_of(native)->reports_name)
		return 0;
	spin_lock(&device->name_lock);
	strscpy(name, device->name, sizeof(name));
	spin_unlock(&device->name_lock);
	return add_uevent_var(env, "NAME=%s", name);
}

static void report_name(struct kern_class_device *device, const char *name)
{
	spin_lock(&device->name_lock);
	strscpy(device->name, name, sizeof(device->name));
	spin_unlock(&device->name_lock);
}

struct kern_class *kern_class_create(const char *name, const struct kern_class_options *options)
{
	struct kern_class *class = kzalloc(sizeof(*class), GFP_KERNEL);
	int status;

	if (!class)
		return ERR_PTR(-ENOMEM);
	class->options = *options;
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 4, 0)
	class->native = class_create(THIS_MODULE, name);
#else
	class->native = class_create(name);
#endif
	if (IS_ERR(class->native)) {
		status = PTR_ERR(class->native);
		kfree(class);
		return ERR_PTR(status);
	}
	class->native->devnode = node_name;
	class->native->dev_uevent = event_text;
	if (!options->abi_version)
		return class;

	sysfs_attr_init(&class->abi_version.attr.attr);
	class->abi_version.attr.attr.name = "abi_version";
	class->abi_version.attr.attr.mode = 0444;
	class->abi_version.attr.show = show_class_attr_string;
	class->abi_version.str = (char *)options->abi_version;
	status = class_create_file(class->native, &class->abi_version.attr);
	if (status) {
		kern_class_destroy(class);
		return ERR_PTR(status);
	}
	return class;
}
EXPORT_SYMBOL_GPL(kern_class_create);

void kern_class_destroy(struct kern_class *class)
{
	class_destroy(class->native);
	kfree(class);
}
EXPORT_SYMBOL_GPL(kern_class_destroy);

static ssize_t show(struct device *native, struct device_attribute *attribute, char *page)
{
	struct kern_sysfs_file *file =
		container_of(attribute, struct kern_class_attribute, native)->file;

	return file->show(file, page);
}

static ssize_t store(struct device *native, struct device_attribute *attribute, const char *text,
		     size_t size)
{
	struct kern_sysfs_file *file =
		container_of(attribute, struct kern_class_attribute, native)->file;
	int status = file->store(file, text, size);

	return status < 0 ? status : size;
}

static void release(struct device *native)
{
	struct kern_class_device *device = container_of(native, struct kern_class_device, native);

	kfree(device->group.attrs);
	kfree(device->attributes);
	kfree(device);
}

static int add_files(struct kern_class_device *device, const struct kern_class_file *files,
		     unsigned int count)
{
	unsigned int i;

	device->attributes = kcalloc(count, sizeof(*device->attributes), GFP_KERNEL);
	device->group.attrs = kcalloc(count + 1, sizeof(*device->group.attrs), GFP_KERNEL);
	if (!device->attributes || !device->group.attrs)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct device_attribute *attribute = &device->attributes[i].native;

		sysfs_attr_init(&attribute->attr);
		attribute->attr.name = files[i].name;
		attribute->attr.mode = files[i].file->store ? 0644 : 0444;
		attribute->show = show;
		attribute->store = files[i].file->store ? store : NULL;
		device->attributes[i].file = files[i].file;
		device->group.attrs[i] = &attribute->attr;
	}
	device->groups[0] = &device->group;
	device->native.groups = device->groups;
	return 0;
}

int kern_class_device_init(struct kern_class_device *device, struct kern_class *class,
			   struct device *parent, const char *name,
			   const struct kern_class_file *files, unsigned int count)
{
	int status;

	device_initialize(&device->native);
	spin_lock_init(&device->name_lock);
	report_name(device, name);
	device->class = class;
	device->native.class = class->native;
	device->native.parent = parent;
	device->native.release = release;
	dev_set_uevent_suppress(&device->native, true);
	status = dev_set_name(&device->native, "%s", name);
	return status ? status : add_files(device, files, count);
}

struct kern_class_device *kern_class_device_create(struct kern_class *class, struct device *parent,
						   const char *name,
						   const struct kern_class_file *files,
						   unsigned int count)
{
	struct kern_class_device *device = kzalloc(sizeof(*device), GFP_KERNEL);
	int status;

	if (!device)
		return ERR_PTR(-ENOMEM);
	status = kern_class_device_init(device, class, parent, name, files, count);
	if (!status)
		status = device_add(&device->native);
	if (status) {
		put_device(&device->native);
		return ERR_PTR(status);
	}
	return device;
}
EXPORT_SYMBOL_GPL(kern_class_device_create);

void kern_class_device_announce(struct kern_class_device *device)
{
	dev_set_uevent_suppress(&device->native, false);
	/* An error of the notification of user space is ignored. */
	kobject_uevent(&device->native.kobj, KOBJ_ADD);
}
EXPORT_SYMBOL_GPL(kern_class_device_announce);

int kern_class_device_rename(struct kern_class_device *device, const char *name)
{
	int status;

	if (strcmp(dev_name(&device->native), name) == 0)
		return 0;
	report_name(device, name);
	status = device_rename(&device->native, name);
	if (status)
		report_name(device, dev_name(&device->native));
	return status;
}
EXPORT_SYMBOL_GPL(kern_class_device_rename);

void kern_class_device_remove(struct kern_class_device *device)
{
	device_unregister(&device->native);
}
EXPORT_SYMBOL_GPL(kern_class_device_remove);

struct device *kern_class_device_native(struct kern_class_device *device)
{
	return &device->native;
}
EXPORT_SYMBOL_GPL(kern_class_device_native);
