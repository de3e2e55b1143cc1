/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares directories and files in debugfs. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

struct dentry;
struct seq_file;

struct kern_debugfs_file {
	void (*show)(struct kern_debugfs_file *file, struct seq_file *out);
	/* NULL for a read-only file. @text is null-terminated. Returns 0 or a negative errno. */
	int (*write)(struct kern_debugfs_file *file, const char *text, size_t size);
	void *context;
	struct dentry *entry;
};

/*
 * parent is NULL for the root. Callers need no error handling, because nothing depends on debugfs.
 */
struct dentry *kern_debugfs_directory(const char *name, struct dentry *parent);
void kern_debugfs_add(struct kern_debugfs_file *file, const char *name, struct dentry *parent);
/* Also waits for running reads and writes of the entry and of all entries below it. */
void kern_debugfs_remove(struct dentry *entry);
void kern_debugfs_print(struct seq_file *out, const char *format, __builtin_va_list args);

KERN_C_END
