// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements open files: those of device nodes, and anonymous files, which have only a descriptor.
 */
#include <linux/anon_inodes.h>
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/path.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "file.h"
#include "native.h"

KERN_NATIVE(wait_queue, wait_queue_head_t)

struct kern_poll {
	struct file *native;
	struct poll_table_struct *table;
};

static const struct kern_file_ops *ops_of(const struct file *native)
{
	return container_of(native->f_op, struct kern_file_kind, native)->ops;
}

static ssize_t file_read(struct file *native, char __user *to, size_t count, loff_t *position)
{
	struct kern_file *file = native->private_data;
	long got = ops_of(native)->read(file->owner, (__force u64)to, count,
					!(native->f_flags & O_NONBLOCK));

	return got == -EINTR ? -ERESTARTSYS : got;
}

static ssize_t file_write(struct file *native, const char __user *from, size_t count,
			  loff_t *position)
{
	struct kern_file *file = native->private_data;
	long taken;

	/*
	 * Commands contain addresses in the memory of the process that writes. Only the process's
	 * own credentials are accepted, so that a process cannot make a more privileged program
	 * write a command by passing it the descriptor.
	 */
	if (native->f_cred != current_cred())
		return -EACCES;
	taken = ops_of(native)->write(file->owner, (__force u64)from, count);
	return taken == -EINTR ? -ERESTARTSYS : taken;
}

static long file_ioctl(struct file *native, unsigned int command, unsigned long argument)
{
	struct kern_file *file = native->private_data;
	int status = ops_of(native)->control(file->owner, command, argument);

	return status == -ENOSYS ? -ENOTTY : status;
}

bool kern_file_waits(const struct kern_file *file)
{
	return !(file->native->f_flags & O_NONBLOCK);
}
EXPORT_SYMBOL_GPL(kern_file_waits);

static __poll_t file_poll(struct file *native, struct poll_table_struct *table)
{
	struct kern_file *file = native->private_data;
	struct kern_poll poll = {native, table};
	unsigned int state = ops_of(native)->poll(file->owner, &poll);

	return (state & KERN_POLL_READABLE ? EPOLLIN | EPOLLRDNORM : 0) |
	       (state & KERN_POLL_WRITABLE ? EPOLLOUT | EPOLLWRNORM : 0) |
	       (state & KERN_POLL_ERROR ? EPOLLERR : 0);
}

void kern_poll_wait(struct kern_poll *poll, struct kern_wait_queue *queue)
{
	poll_wait(poll->native, native_wait_queue(queue), poll->table);
}
EXPORT_SYMBOL_GPL(kern_poll_wait);

static int file_fasync(int descriptor, struct file *native, int on)
{
	struct kern_file *file = native->private_data;

	return fasync_helper(descriptor, native, on, &file->listeners);
}

/*
 * SIGIO may go to thousands of processes, which is too much work for an interrupt, so a work item
 * sends it.
 */
static void signal_listeners(struct work_struct *work)
{
	struct kern_file *file = container_of(work, struct kern_file, signal);

	kill_fasync(&file->listeners, SIGIO, POLL_IN);
}

void kern_file_signal(struct kern_file *file)
{
	if (READ_ONCE(file->listeners))
		schedule_work(&file->signal);
}
EXPORT_SYMBOL_GPL(kern_file_signal);

static int file_release(struct inode *inode, struct file *native)
{
	struct kern_file *file = native->private_data;

	ops_of(native)->release(file->owner);
	kern_file_free(file);
	return 0;
}

struct kern_file *kern_file_alloc(struct file *native)
{
	struct kern_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return NULL;
	file->native = native;
	mutex_init(&file->lock);
	INIT_WORK(&file->signal, signal_listeners);
	return file;
}

void kern_file_free(struct kern_file *file)
{
	cancel_work_sync(&file->signal);
	if (file->revoked_page)
		__free_page(file->revoked_page);
	mutex_destroy(&file->lock);
	kfree(file);
}

/*
 * Mappings. A page is mapped when it is first accessed. By then the VMA is in the file's tree of
 * mappings, so that kern_file_revoke() finds it. vm_private_data is the difference between page
 * frame numbers and the page offsets in the file.
 */

static vm_fault_t fault_locked(struct kern_file *file, struct vm_fault *fault)
{
	struct vm_area_struct *vma = fault->vma;
	struct page *revoked_page;

	if (!file->revoked)
		return vmf_insert_pfn(vma, fault->address,
				      (unsigned long)vma->vm_private_data + fault->pgoff);
	if (vma->vm_flags & VM_MAYWRITE) {
		if (!file->revoked_page)
			file->revoked_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
		revoked_page = file->revoked_page;
		if (!revoked_page)
			return VM_FAULT_OOM;
	} else {
		revoked_page = ZERO_PAGE(fault->address);
	}
	return vmf_insert_pfn_prot(vma, fault->address, page_to_pfn(revoked_page),
				   vm_get_page_prot(vma->vm_flags));
}

static vm_fault_t mapping_fault(struct vm_fault *fault)
{
	struct kern_file *file = fault->vma->vm_file->private_data;
	vm_fault_t result;

	mutex_lock(&file->lock);
	result = fault_locked(file, fault);
	mutex_unlock(&file->lock);
	return result;
}

static const struct vm_operations_struct mapping_operations = {
	.fault = mapping_fault,
};

static void change_flags(struct vm_area_struct *vma, unsigned long set, unsigned long clear)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#else
	vm_flags_mod(vma, set, clear);
#endif
}

static int file_mmap(struct file *native, struct vm_area_struct *vma)
{
	struct kern_file *file = native->private_data;
	struct kern_mapping mapping = {};
	int status;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_EXEC)
		return -EINVAL;
	mutex_lock(&file->lock);
	status = file->revoked ? -EIO
			       : ops_of(native)->map(file->owner, vma->vm_pgoff,
						     vma->vm_end - vma->vm_start, &mapping);
	mutex_unlock(&file->lock);
	if (status)
		return status;
	if (!mapping.writable && vma->vm_flags & VM_WRITE)
		return -EPERM;
	if (IS_ENABLED(CONFIG_INDIRECT_IOMEM) && !pfn_valid(mapping.pfn)) {
		/*
		 * In this kernel, register accesses are function calls (CONFIG_INDIRECT_IOMEM), so
		 * there is no page that a program could map.
		 */
		pr_warn_once(
			"weft_kern: %s: programs cannot map a device's registers on this kernel\n",
			current->comm);
		return -EOPNOTSUPP;
	}

	change_flags(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP,
		     VM_MAYEXEC | (mapping.writable ? 0 : VM_MAYWRITE));
	vma->vm_page_prot =
		pgprot_decrypted(mapping.write_combining ? pgprot_writecombine(vma->vm_page_prot)
							 : pgprot_noncached(vma->vm_page_prot));
	vma->vm_private_data = (void *)(unsigned long)(mapping.pfn - vma->vm_pgoff);
	vma->vm_ops = &mapping_operations;
	return 0;
}

void kern_file_revoke(struct kern_file *file)
{
	mutex_lock(&file->lock);
	file->revoked = true;
	mutex_unlock(&file->lock);
	/*
	 * This removes the pages of all files of the node. Files that are not revoked get their
	 * pages again by page faults.
	 */
	unmap_mapping_range(file->native->f_mapping, 0, 0, 1);
}
EXPORT_SYMBOL_GPL(kern_file_revoke);

struct kern_file_kind *kern_file_kind_create(const struct kern_file_ops *ops, struct module *module)
{
	struct kern_file_kind *kind = kzalloc(sizeof(*kind), GFP_KERNEL);

	if (!kind)
		return NULL;
	kind->ops = ops;
	kind->native = (struct file_operations){
		.owner = module,
		.open = kern_node_open,
		.read = ops->read ? file_read : NULL,
		.write = ops->write ? file_write : NULL,
		.unlocked_ioctl = ops->control ? file_ioctl : NULL,
		.compat_ioctl = ops->control ? compat_ptr_ioctl : NULL,
		.poll = ops->poll ? file_poll : NULL,
		.fasync = ops->poll ? file_fasync : NULL,
		.mmap = ops->map ? file_mmap : NULL,
		.release = file_release,
	};
	return kind;
}
EXPORT_SYMBOL_GPL(kern_file_kind_create);

void kern_file_kind_destroy(struct kern_file_kind *kind)
{
	kfree(kind);
}
EXPORT_SYMBOL_GPL(kern_file_kind_destroy);

int kern_file_create(struct kern_file_kind *kind, const char *name, void *owner,
		     struct kern_new_file *created)
{
	struct kern_file *file;
	struct file *native;
	int descriptor = get_unused_fd_flags(O_CLOEXEC);

	if (descriptor < 0)
		return descriptor;
	file = kern_file_alloc(NULL);
	if (!file) {
		put_unused_fd(descriptor);
		return -ENOMEM;
	}
	native = anon_inode_getfile(name, &kind->native, file, O_RDONLY);
	if (IS_ERR(native)) {
		kern_file_free(file);
		put_unused_fd(descriptor);
		return PTR_ERR(native);
	}
	stream_open(file_inode(native), native);
	file->native = native;
	file->owner = owner;
	created->file = file;
	created->descriptor = descriptor;
	return 0;
}
EXPORT_SYMBOL_GPL(kern_file_create);

void kern_file_install(const struct kern_new_file *created)
{
	fd_install(created->descriptor, created->file->native);
}
EXPORT_SYMBOL_GPL(kern_file_install);

void kern_file_cancel(const struct kern_new_file *created)
{
	put_unused_fd(created->descriptor);
	fput(created->file->native);
}
EXPORT_SYMBOL_GPL(kern_file_cancel);

void *kern_file_get(struct kern_file_kind *kind, int descriptor, struct kern_file **file)
{
	struct file *native = fget(descriptor);

	if (!native)
		return NULL;
	if (native->f_op != &kind->native) {
		fput(native);
		return NULL;
	}
	*file = native->private_data;
	return (*file)->owner;
}
EXPORT_SYMBOL_GPL(kern_file_get);

void kern_file_put(struct kern_file *file)
{
	fput(file->native);
}
EXPORT_SYMBOL_GPL(kern_file_put);

bool kern_inode_get(int descriptor, struct kern_inode *held)
{
	struct file *native = fget(descriptor);

	if (!native)
		return false;
	path_get(&native->f_path);
	held->inode = file_inode(native);
	held->mount = native->f_path.mnt;
	held->entry = native->f_path.dentry;
	fput(native);
	return true;
}
EXPORT_SYMBOL_GPL(kern_inode_get);

void kern_inode_put(const struct kern_inode *held)
{
	const struct path path = {.mnt = held->mount, .dentry = held->entry};

	path_put(&path);
}
EXPORT_SYMBOL_GPL(kern_inode_put);

bool kern_has_raw_network(void)
{
	return capable(CAP_NET_RAW);
}
EXPORT_SYMBOL_GPL(kern_has_raw_network);
