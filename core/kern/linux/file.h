/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declarations shared by the C files of open files and device nodes. */
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
	/* Receivers of SIGIO, and the work that signals them. */
	struct fasync_struct *listeners;
	struct work_struct signal;
	/* Below all others: under it a mapping's page is given or refused. */
	struct mutex lock;
	bool revoked;
	/* The page, private to this file, that mappings get instead of the device. */
	struct page *nobody;
};

struct kern_file *kern_file_alloc(struct file *native);
void kern_file_free(struct kern_file *file);

/* Opens a node; no other kinds of files are opened. */
int kern_node_open(struct inode *inode, struct file *native);
