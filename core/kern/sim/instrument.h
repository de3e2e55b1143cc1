/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Instruments atomic accesses, so that the scheduler of core/kern/sim can switch fibers at each of
 * them, too. This header is included first (-include) in all code that is compiled for
 * core/kern/sim. The macros wrap the compiler's atomic builtins, which include/kern/atomic.hpp and
 * its users call: they report the access and then perform it. A macro is not expanded recursively,
 * so the expression after the comma is the builtin.
 */
#pragma once

#ifdef __cplusplus
extern "C" void sim_access(const volatile void *address);

#define __atomic_load_n(p, ...) (sim_access(p), __atomic_load_n(p, __VA_ARGS__))
#define __atomic_store_n(p, ...) (sim_access(p), __atomic_store_n(p, __VA_ARGS__))
#define __atomic_exchange_n(p, ...) (sim_access(p), __atomic_exchange_n(p, __VA_ARGS__))
#define __atomic_compare_exchange_n(p, ...)                                                        \
	(sim_access(p), __atomic_compare_exchange_n(p, __VA_ARGS__))
#define __atomic_fetch_add(p, ...) (sim_access(p), __atomic_fetch_add(p, __VA_ARGS__))
#define __atomic_fetch_sub(p, ...) (sim_access(p), __atomic_fetch_sub(p, __VA_ARGS__))
#define __atomic_fetch_or(p, ...) (sim_access(p), __atomic_fetch_or(p, __VA_ARGS__))
#define __atomic_fetch_and(p, ...) (sim_access(p), __atomic_fetch_and(p, __VA_ARGS__))
#define __atomic_add_fetch(p, ...) (sim_access(p), __atomic_add_fetch(p, __VA_ARGS__))

/* A section for whose bounds the linker defines symbols. */
#define KERN_KUNIT_SECTION "sim_suites"
#endif
