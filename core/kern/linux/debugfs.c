// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Wraps debugfs for C++ code: directories, and files that C++ objects read and write
// (include/kern/abi/debugfs.h).
#include <linux/debugfs.h>
#include <linux/export.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <kern/abi/debugfs.h>

static int show(struct seq_file *out, void *unused)
{
	struct kern_debugfs_file *file = out->private;

	file->show(file, out);
	return 0;
}

static int open(struct inode *inode, struct file *opened)
{
	return single_open(opened, show, inode->i_private);
}

static ssize_t write(struct file *opened, const char __user *from, size_t size, loff_t *position)
{
	struct kern_debugfs_file *file = ((struct seq_file *)opened->private_data)->private;
	char *text;
	int status;

	if (!file->write)
		return -EACCES;
	if (size > PAGE_SIZE - 1)
		return -E2BIG;
	text = memdup_user_nul(from, size);
	if (IS_ERR(text))
		return PTR_ERR(text);
	status = file->write(file, text, size);
	kfree(text);
	return status < 0 ? status : size;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open,
	.read = seq_read,
	.write = write,
	.llseek = seq_lseek,
	.release = single_release,
};

struct dentry *kern_debugfs_directory(const char *name, struct dentry *parent)
{
	return debugfs_create_dir(name, parent);
}
EXPORT_SYMBOL_GPL(kern_debugfs_directory);

void kern_debugfs_add(struct kern_debugfs_file *file, const char *name, struct dentry *parent)
{
	file->entry =
		debugfs_create_file(name, file->write ? 0600 : 0400, parent, file, &operations);
}
EXPORT_SYMBOL_GPL(kern_debugfs_add);

void kern_debugfs_remove(struct dentry *entry)
{
	debugfs_remove(entry);
}
EXPORT_SYMBOL_GPL(kern_debugfs_remove);

void kern_debugfs_print(struct seq_file *out, const char *format, va_list args)
{
	seq_vprintf(out, format, args);
}
EXPORT_SYMBOL_GPL(kern_debugfs_print);
