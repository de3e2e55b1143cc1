// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements references to processes, and returns the number (PID) of a process
// (include/kern/abi/process.h).
#include <linux/export.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <kern/abi/process.h>

static struct pid *native_of(struct kern_process *process)
{
	return (struct pid *)process;
}

struct kern_process *kern_process_get(void)
{
	return (struct kern_process *)get_task_pid(current, PIDTYPE_TGID);
}
EXPORT_SYMBOL_GPL(kern_process_get);

void kern_process_put(struct kern_process *process)
{
	put_pid(native_of(process));
}
EXPORT_SYMBOL_GPL(kern_process_put);

u32 kern_process_number(struct kern_process *process)
{
	struct pid *native = native_of(process);
	u32 number = 0;

	rcu_read_lock();
	if (pid_task(native, PIDTYPE_TGID))
		number = pid_vnr(native);
	rcu_read_unlock();
	return number;
}
EXPORT_SYMBOL_GPL(kern_process_number);
