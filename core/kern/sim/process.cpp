// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// include/kern/abi/process.h, where there are no processes: what there is is the kernel's.
#include <kern/abi/process.h>

extern "C" {

struct kern_process *kern_process_get(void)
{
	return nullptr;
}

void kern_process_put(struct kern_process *) {}

u32 kern_process_number(struct kern_process *)
{
	return 0;
}
}
