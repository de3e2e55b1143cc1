// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements device nodes in /dev/infiniband, each with an entry in a device class. */
#include <linux/cdev.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include "device_class.h"
#include "file.h"

struct kern_node {
	/* Must be the first member, because releasing the device frees the node. */
	struct kern_class_device device;
	struct cdev cdev;
	struct kern_node_options options;
	/* Held for reading while a task opens the node. */
	struct rw_semaphore lock;
	bool present;
};

int kern_node_region_register(unsigned int major, unsigned int first_minor, const char *name)
{
	return register_chrdev_region(MKDEV(major, first_minor), KERN_NODES, name);
}
EXPORT_SYMBOL_GPL(kern_node_region_register);

void kern_node_region_unregister(unsigned int major, unsigned int first_minor)
{
	unregister_chrdev_region(MKDEV(major, first_minor), KERN_NODES);
}
EXPORT_SYMBOL_GPL(kern_node_region_unregister);

static int open_present(struct kern_node *node, struct kern_file *file)
{
	int status = -ENXIO;

	down_read(&node->lock);
	if (node->present)
		status = node->options.ops->open(node->options.context, file, &file->owner);
	up_read(&node->lock);
	return status;
}

int kern_node_open(struct inode *inode, struct file *native)
{
	struct kern_node *node = container_of(inode->i_cdev, struct kern_node, cdev);
	struct kern_file *file = kern_file_alloc(native);
	int status;

	if (!file)
		return -ENOMEM;
	native->private_data = file;
	status = open_present(node, file);
	if (status) {
		kern_file_free(file);
		return status == -EINTR ? -ERESTARTSYS : status;
	}
	return stream_open(inode, native);
}

/* Waits for running open() calls, and refuses later ones. */
static void block_open(struct kern_node *node)
{
	down_write(&node->lock);
	node->present = false;
	up_write(&node->lock);
}

struct kern_node *kern_node_create(struct kern_class *class, struct device *parent,
				   const char *name, const struct kern_class_file *files,
				   unsigned int count, const struct kern_node_options *options)
{
	struct kern_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	int status;

	if (!node)
		return ERR_PTR(-ENOMEM);
	node->options = *options;
	node->present = true;
	init_rwsem(&node->lock);
	cdev_init(&node->cdev, &options->kind->native);
	node->cdev.owner = options->kind->native.owner;
	status = kern_class_device_init(&node->device, class, parent, name, files, count);
	node->device.native.devt = MKDEV(options->major, options->minor);
	if (!status)
		status = cdev_device_add(&node->cdev, &node->device.native);
	if (status) {
		/* A task may have opened the node by its number already. */
		block_open(node);
		put_device(&node->device.native);
		return ERR_PTR(status);
	}
	return node;
}
EXPORT_SYMBOL_GPL(kern_node_create);

void kern_node_announce(struct kern_node *node)
{
	kern_class_device_announce(&node->device);
}
EXPORT_SYMBOL_GPL(kern_node_announce);

void kern_node_remove(struct kern_node *node)
{
	cdev_device_del(&node->cdev, &node->device.native);
	block_open(node);
	put_device(&node->device.native);
}
EXPORT_SYMBOL_GPL(kern_node_remove);
