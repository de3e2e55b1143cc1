/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares files that programs open: device nodes and anonymous files. Programs can poll them. */
#pragma once
#include <kern/abi/device_class.h>
#include <kern/abi/wait.h>

KERN_C_BEGIN

struct kern_file;
struct kern_file_kind;
struct kern_node;
struct kern_poll;
struct module;

/* Registers of a device that a mapping of a file gives access to. */
struct kern_mapping {
	u64 pfn;
	bool write_combining;
	bool writable;
};

enum {
	KERN_POLL_READABLE = 1 << 0,
	KERN_POLL_ERROR = 1 << 1,
	KERN_POLL_WRITABLE = 1 << 2,
};

/*
 * Operations of a kind of file. @owner is the object that was passed when the file was opened or
 * created.
 *
 * read, write: @to and @from are addresses in the calling process. Return the number of bytes or a
 * negative errno. NULL if the file does not support the call. @wait is false for a non-blocking
 * file. If a wait is interrupted, they return -EINTR; the system call is restarted if the signal's
 * handler requests that.
 *
 * control: ioctl(), also of 32-bit programs. Returns 0 or a negative errno; -ENOSYS for an unknown
 * command, which the program gets as ENOTTY.
 *
 * map: must not access the memory of the process. Not called after the file has been revoked.
 *
 * release: called once, when the last descriptor and the last mapping have been closed. The owner
 * is not used afterwards.
 */
struct kern_file_ops {
	long (*read)(void *owner, u64 to, size_t count, bool wait);
	long (*write)(void *owner, u64 from, size_t count);
	int (*control)(void *owner, unsigned int command, u64 argument);
	/*
	 * Returns KERN_POLL_…. It must first call kern_poll_wait() on each queue that is woken when
	 * the result changes.
	 */
	unsigned int (*poll)(void *owner, struct kern_poll *poll);
	int (*map)(void *owner, u64 page_offset, size_t length, struct kern_mapping *mapping);
	void (*release)(void *owner);
};

/* Returns NULL if there is no memory. The module is held while a file of this kind is open. */
struct kern_file_kind *kern_file_kind_create(const struct kern_file_ops *ops,
					     struct module *module);
/* No file of this kind may be open. */
void kern_file_kind_destroy(struct kern_file_kind *kind);

/* A new anonymous file. No other thread can use its descriptor before kern_file_install(). */
struct kern_new_file {
	struct kern_file *file;
	int descriptor;
};
/*
 * Creates a file that can only be read and is closed by exec. It takes over the owner, unless the
 * function fails. Errors: ENOMEM, EMFILE, ENFILE. @name must stay valid.
 */
int kern_file_create(struct kern_file_kind *kind, const char *name, void *owner,
		     struct kern_new_file *created);
void kern_file_install(const struct kern_new_file *created);
/* Drops the file; release is called soon afterwards. */
void kern_file_cancel(const struct kern_new_file *created);

/*
 * Returns the owner of the file that the calling process has open with this descriptor, held until
 * kern_file_put(); NULL if there is no file of this kind.
 */
void *kern_file_get(struct kern_file_kind *kind, int descriptor, struct kern_file **file);
void kern_file_put(struct kern_file *file);

/*
 * Looks up the file that the calling process has open with this descriptor. @inode is the same for
 * each name and descriptor of the file. It is held, so that it is not reused, until
 * kern_inode_put(). The mount through which it was found is held, too, because a file system must
 * not be unmounted while an inode is held. Returns false if the process has no such descriptor. May
 * sleep.
 */
struct vfsmount;
struct dentry;
struct kern_inode {
	const void *inode;
	struct vfsmount *mount;
	struct dentry *entry;
};
bool kern_inode_get(int descriptor, struct kern_inode *held);
void kern_inode_put(const struct kern_inode *held);

/*
 * Permanently disconnects all mappings of the file from the device's registers; they then map
 * ordinary memory instead. May sleep.
 */
void kern_file_revoke(struct kern_file *file);
/* Sends SIGIO to the processes that requested it. Context: any. */
void kern_file_signal(struct kern_file *file);
void kern_poll_wait(struct kern_poll *poll, struct kern_wait_queue *queue);

/*
 * Returns true if reads and writes of the file block, that is, if O_NONBLOCK is not set. For
 * functions that open the file.
 */
bool kern_file_waits(const struct kern_file *file);

/* Returns true if the calling task has CAP_NET_RAW. */
bool kern_has_raw_network(void);

/*
 * A node in /dev, with an entry in a class as by kern_class_device_create(). @open creates the
 * owner of an opened file, and returns 0 or a negative errno (-EINTR as for read). It is not called
 * after the node has been removed, and the removal waits for running calls. @number is less than
 * KERN_NODES.
 */
struct kern_node_ops {
	int (*open)(void *context, struct kern_file *file, void **owner);
};
enum { KERN_NODES = 32 };

/* Allocates device numbers for the nodes. Returns 0 or a negative errno. */
int kern_node_region_register(unsigned int major, unsigned int first_minor, const char *name);
void kern_node_region_unregister(unsigned int major, unsigned int first_minor);

struct kern_node_options {
	const struct kern_node_ops *ops;
	void *context;
	struct kern_file_kind *kind;
	unsigned int major;
	unsigned int minor;
};
struct kern_node *kern_node_create(struct kern_class *class_, struct device *parent,
				   const char *name, const struct kern_class_file *files,
				   unsigned int count, const struct kern_node_options *options);
void kern_node_announce(struct kern_node *node);
/*
 * Removes a node. It can no longer be opened; open files stay open. Waits for running open() calls,
 * and for reads of its sysfs files. May sleep.
 */
void kern_node_remove(struct kern_node *node);

/*
 * Creates a node in /dev/infiniband that does not belong to a device. All users may read and write
 * it. It is in the class misc, with a file abi_version. There can be only one node with this kind
 * of files. Returns an error pointer: -ENOMEM, -EEXIST or -EBUSY. @name and @abi_version must stay
 * valid.
 */
struct kern_misc_node;
struct kern_misc_node *kern_misc_node_create(const char *name, const char *abi_version,
					     const struct kern_node_ops *ops, void *context,
					     struct kern_file_kind *kind);
/* Return the node's device number. */
unsigned int kern_misc_node_major(const struct kern_misc_node *node);
unsigned int kern_misc_node_minor(const struct kern_misc_node *node);
/*
 * Removes a node. It can no longer be opened; open files stay open. Waits for running open() calls.
 * May sleep.
 */
void kern_misc_node_remove(struct kern_misc_node *node);

KERN_C_END
