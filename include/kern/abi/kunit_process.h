/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Lets a KUnit case run with the address space of a process. */
#pragma once
#include <kern/abi/base.h>

struct kern_file;

KERN_C_BEGIN

/*
 * The test's task in the place of a process, whose memory is the first process's: what is mapped
 * there is the test's alone. enter: false without one; each map: the address, or 0, of untouched
 * memory; pinned: pages; limit: calls body as a process that may lock so many bytes, and is not
 * privileged to lock more.
 */
bool kern_kunit_process_enter(void);
void kern_kunit_process_leave(void);
u64 kern_kunit_process_map(size_t size, bool writable, bool shared);
void kern_kunit_process_unmap(u64 address, size_t size);
u64 kern_kunit_process_pinned(void);
/* True if this kernel can pin pages of a read-only shared mapping for reading. */
bool kern_kunit_process_pins_for_reading(void);
void kern_kunit_process_limit(u64 bytes, void (*body)(void *context), void *context);

/*
 * Creates an object that the functions for opened files accept, without node or descriptor; it
 * sends no signals. waits: as if opened without O_NONBLOCK. Returns NULL without memory.
 */
struct kern_file *kern_kunit_file_create(bool waits);
void kern_kunit_file_destroy(struct kern_file *file);

KERN_C_END
