// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the references to processes of include/kern/abi/process.h. The simulation has no
// processes: the kernel owns all objects.
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
