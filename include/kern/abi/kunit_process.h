/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares functions by which a KUnit case uses the address space of a process. */
#pragma once
#include <kern/abi/base.h>

struct kern_file;

KERN_C_BEGIN

/*
 * Run the test's task with the memory of a process (init). Areas that the test maps are used only
 * by the test.
 *
 * enter: returns false if there is no such process.
 *
 * map: returns the address of memory that has not been accessed, or 0.
 *
 * pinned: returns the number of pinned pages.
 *
 * limit: calls body as an unprivileged process that may lock this number of bytes.
 */
bool kern_kunit_process_enter(void);
void kern_kunit_process_leave(void);
u64 kern_kunit_process_map(size_t size, bool writable, bool shared);
void kern_kunit_process_unmap(u64 address, size_t size);
u64 kern_kunit_process_pinned(void);
/* Returns true if this kernel can pin pages of a read-only shared mapping for reading. */
bool kern_kunit_process_pins_for_reading(void);
void kern_kunit_process_limit(u64 bytes, void (*body)(void *context), void *context);

/*
 * Creates an object that the functions for opened files accept, without a node or descriptor. It
 * sends no signals. @waits: as if opened without O_NONBLOCK. Returns NULL if there is no memory.
 */
struct kern_file *kern_kunit_file_create(bool waits);
void kern_kunit_file_destroy(struct kern_file *file);

KERN_C_END
