// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Runs a test in the context of a process: the test borrows the address space of the guest's first
 * process.
 */
#include <linux/cred.h>
#include <linux/export.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <kern/abi/kunit_process.h>
#include "file.h"

bool kern_kunit_process_enter(void)
{
	struct pid *pid = find_get_pid(1);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct mm_struct *mm = task ? get_task_mm(task) : NULL;

	if (task)
		put_task_struct(task);
	put_pid(pid);
	if (!mm)
		return false;
	kthread_use_mm(mm);
	return true;
}
EXPORT_SYMBOL_GPL(kern_kunit_process_enter);

void kern_kunit_process_leave(void)
{
	struct mm_struct *mm = current->mm;

	kthread_unuse_mm(mm);
	mmput(mm);
}
EXPORT_SYMBOL_GPL(kern_kunit_process_leave);

u64 kern_kunit_process_map(size_t size, bool writable, bool shared)
{
	const unsigned long address =
		vm_mmap(NULL, 0, size, PROT_READ | (writable ? PROT_WRITE : 0),
			MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), 0);

	return IS_ERR_VALUE(address) ? 0 : address;
}
EXPORT_SYMBOL_GPL(kern_kunit_process_map);

void kern_kunit_process_unmap(u64 address, size_t size)
{
	vm_munmap(address, size);
}
EXPORT_SYMBOL_GPL(kern_kunit_process_unmap);

u64 kern_kunit_process_pinned(void)
{
	return atomic64_read(&current->mm->pinned_vm);
}
EXPORT_SYMBOL_GPL(kern_kunit_process_pinned);

bool kern_kunit_process_pins_for_reading(void)
{
	return LINUX_VERSION_CODE >= KERNEL_VERSION(6, 2, 0);
}
EXPORT_SYMBOL_GPL(kern_kunit_process_pins_for_reading);

void kern_kunit_process_limit(u64 bytes, void (*body)(void *context), void *context)
{
	struct rlimit *limit = &current->signal->rlim[RLIMIT_MEMLOCK];
	const struct rlimit before = *limit;
	struct cred *weak = prepare_creds();
	const struct cred *strong;

	if (WARN_ON(!weak))
		return;
	cap_lower(weak->cap_effective, CAP_IPC_LOCK);
	*limit = (struct rlimit){.rlim_cur = bytes, .rlim_max = bytes};
	strong = override_creds(weak);
	body(context);
	revert_creds(strong);
	put_cred(weak);
	*limit = before;
}
EXPORT_SYMBOL_GPL(kern_kunit_process_limit);

/* Only f_flags of the struct file is set, which determines whether calls block. */
struct kern_file *kern_kunit_file_create(bool waits)
{
	struct file *native = kzalloc(sizeof(*native), GFP_KERNEL);
	struct kern_file *file = native ? kern_file_alloc(native) : NULL;

	if (!file) {
		kfree(native);
		return NULL;
	}
	native->f_flags = waits ? 0 : O_NONBLOCK;
	return file;
}
EXPORT_SYMBOL_GPL(kern_kunit_file_create);

void kern_kunit_file_destroy(struct kern_file *file)
{
	kfree(file->native);
	kern_file_free(file);
}
EXPORT_SYMBOL_GPL(kern_kunit_file_destroy);
