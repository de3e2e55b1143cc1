/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Open files, device nodes, and polling. */
#pragma once
#include <kern/abi/device_class.h>
#include <kern/abi/wait.h>

KERN_C_BEGIN

struct kern_file;
struct kern_file_kind;
struct kern_node;
struct kern_poll;
struct module;

/* Registers of a device that a mapping of a file maps. */
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
 * Operations of a kind of file; owner is the object given when it was opened or created. read and
 * write: addresses in the calling process; how many bytes, or a negative errno; NULL where there is
 * no such call. wait: false for a file that does not wait. An interrupted wait is EINTR here, and
 * is begun again where the signal's handler asks for that. control: ioctl(), of programs of either
 * word size; 0 or a negative errno; ENOSYS for a command that there is not, which the program knows
 * as ENOTTY. map is not called any more once the file has been revoked; it must not reach for
 * memory of the process. release: the last descriptor and the last mapping have gone; called once,
 * the owner is not used any more.
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

/* Returns NULL without memory. The module is held while a file of the kind is open. */
struct kern_file_kind *kern_file_kind_create(const struct kern_file_ops *ops,
					     struct module *module);
/* No file of the kind may be open. */
void kern_file_kind_destroy(struct kern_file_kind *kind);

/* A file without a name. No other thread can use its descriptor before kern_file_install(). */
struct kern_new_file {
	struct kern_file *file;
	int descriptor;
};
/*
 * The file can only be read, and is closed by exec. It takes over the owner unless it fails:
 * ENOMEM, EMFILE, ENFILE. name must stay valid.
 */
int kern_file_create(struct kern_file_kind *kind, const char *name, void *owner,
		     struct kern_new_file *created);
void kern_file_install(const struct kern_new_file *created);
/* Drops the file; release is called soon afterwards. */
void kern_file_cancel(const struct kern_new_file *created);

/*
 * Returns the owner of the file that the calling process has open under that number, held until
 * kern_file_put(); NULL if it has none of that kind.
 */
void *kern_file_get(struct kern_file_kind *kind, int descriptor, struct kern_file **file);
void kern_file_put(struct kern_file *file);

/*
 * Looks up the file that the calling process has open by that number: @inode is the same for each
 * of its names and descriptors. It is held, and not reused, until kern_inode_put(), and with it the
 * mount that it was found by, because a file system must not be unmounted under an inode. False if
 * the process has no such descriptor. May sleep.
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
 * Mappings are permanently disconnected from the device's registers, and map plain memory instead.
 * May sleep.
 */
void kern_file_revoke(struct kern_file *file);
/* Sends SIGIO to the processes that requested it. Any context. */
void kern_file_signal(struct kern_file *file);
void kern_poll_wait(struct kern_poll *poll, struct kern_wait_queue *queue);

/*
 * Returns true if read and write of the file wait, that is, if O_NONBLOCK is not set. For code that
 * opens it.
 */
bool kern_file_waits(const struct kern_file *file);

/* Returns true if the calling task has CAP_NET_RAW. */
bool kern_has_raw_network(void);

/*
 * A node in /dev, with an entry in a class, as kern_class_device_create(). open: makes the owner of
 * an opened file, 0 or a negative errno, EINTR as for read; it is not called any more once the node
 * has been removed, and removal waits for it. number: below KERN_NODES.
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
 * The node can no longer be opened; open files stay open. Waits for running opens and reads of its
 * files. May sleep.
 */
void kern_node_remove(struct kern_node *node);

/*
 * A node in /dev/infiniband that belongs to no device. All users may read and write it; it is in
 * the class misc, with the file abi_version. It is the only node of this kind of files. Returns an
 * error pointer for ENOMEM, EEXIST and EBUSY. name and abi_version must stay valid.
 */
struct kern_misc_node;
struct kern_misc_node *kern_misc_node_create(const char *name, const char *abi_version,
					     const struct kern_node_ops *ops, void *context,
					     struct kern_file_kind *kind);
/* Returns its device number. */
unsigned int kern_misc_node_major(const struct kern_misc_node *node);
unsigned int kern_misc_node_minor(const struct kern_misc_node *node);
/* The node can no longer be opened; open files stay open. Waits for running opens. May sleep. */
void kern_misc_node_remove(struct kern_misc_node *node);

KERN_C_END
