/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares the structures and functions that file.c and the C files of device nodes share. */
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
	/* Receivers of SIGIO, and the work item that sends it. */
	struct fasync_struct *listeners;
	struct work_struct signal;
	/* Innermost lock. Held while a page of a mapping is provided or refused. */
	struct mutex lock;
	bool revoked;
	/*
	 * A page that is private to this file. Writable mappings get it instead of the device after
	 * the file was revoked.
	 */
	struct page *revoked_page;
};

struct kern_file *kern_file_alloc(struct file *native);
void kern_file_free(struct kern_file *file);

/* Opens a node. Other kinds of files are not opened. */
int kern_node_open(struct inode *inode, struct file *native);
