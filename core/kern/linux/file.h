/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* What the C files of opened files and of nodes share. */
#pragma once
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <kern/abi/file.h>

struct kern_file_kind {
	struct file_operations native;
	const struct kern_file_ops *ops;
};

struct kern_file {
	struct file *native;
	void *owner;
	/* Who is told by SIGIO, and what tells them. */
	struct fasync_struct *listeners;
	struct work_struct signal;
	/* Below all others: under it a mapping's page is given or refused. */
	struct mutex lock;
	bool revoked;
	/* What mappings get instead of the device: this file's own. */
	struct page *nobody;
};

struct kern_file *kern_file_alloc(struct file *native);
void kern_file_free(struct kern_file *file);

/* Of a node; other files are not opened. */
int kern_node_open(struct inode *inode, struct file *native);
