// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements device nodes in /dev/infiniband that do not belong to an RDMA device. */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/major.h>
#include <linux/miscdevice.h>
#include <linux/slab.h>
#include "file.h"

struct kern_misc_node {
	struct miscdevice native;
	const struct kern_node_ops *ops;
	void *context;
	const char *abi_version;
	char path[48];
};

static ssize_t abi_version_show(struct device *device, struct device_attribute *attribute,
				char *page)
{
	const struct miscdevice *native = dev_get_drvdata(device);

	return sysfs_emit(page, "%s\n",
			  container_of(native, struct kern_misc_node, native)->abi_version);
}
static DEVICE_ATTR_RO(abi_version);

static struct attribute *node_attrs[] = {
	&dev_attr_abi_version.attr,
	NULL,
};
ATTRIBUTE_GROUPS(node);

/*
 * The misc driver calls this with its own lock held, which it also takes when the node is removed.
 */
static int open_misc(struct inode *inode, struct file *native)
{
	struct kern_misc_node *node =
		container_of(native->private_data, struct kern_misc_node, native);
	struct kern_file *file = kern_file_alloc(native);
	int status;

	if (!file)
		return -ENOMEM;
	native->private_data = file;
	status = node->ops->open(node->context, file, &file->owner);
	if (status) {
		kern_file_free(file);
		return status;
	}
	return stream_open(inode, native);
}

struct kern_misc_node *kern_misc_node_create(const char *name, const char *abi_version,
					     const struct kern_node_ops *ops, void *context,
					     struct kern_file_kind *kind)
{
	struct kern_misc_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	int status;

	if (!node)
		return ERR_PTR(-ENOMEM);
	node->ops = ops;
	node->context = context;
	node->abi_version = abi_version;
	snprintf(node->path, sizeof(node->path), "infiniband/%s", name);
	kind->native.open = open_misc;
	node->native = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR,
		.name = name,
		.nodename = node->path,
		.mode = 0666,
		.fops = &kind->native,
		.groups = node_groups,
	};
	status = misc_register(&node->native);
	if (status) {
		kfree(node);
		return ERR_PTR(status);
	}
	return node;
}
EXPORT_SYMBOL_GPL(kern_misc_node_create);

unsigned int kern_misc_node_major(const struct kern_misc_node *node)
{
	return MISC_MAJOR;
}
EXPORT_SYMBOL_GPL(kern_misc_node_major);

unsigned int kern_misc_node_minor(const struct kern_misc_node *node)
{
	return node->native.minor;
}
EXPORT_SYMBOL_GPL(kern_misc_node_minor);

void kern_misc_node_remove(struct kern_misc_node *node)
{
	misc_deregister(&node->native);
	kfree(node);
}
EXPORT_SYMBOL_GPL(kern_misc_node_remove);
