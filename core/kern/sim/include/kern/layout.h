/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Defines the sizes of kernel objects for core/kern/sim. For a real kernel,
 * scripts/make/kbuild/layout.mk generates this header. Here the sizes are those of the simulation's
 * objects. Each file that implements such an object asserts that the object fits.
 */
#pragma once

#define KERN_SIZEOF_spinlock 32
#define KERN_ALIGNOF_spinlock 8
#define KERN_SIZEOF_mutex 32
#define KERN_ALIGNOF_mutex 8
#define KERN_SIZEOF_rw_semaphore 40
#define KERN_ALIGNOF_rw_semaphore 8
#define KERN_SIZEOF_lock_class_key 8
#define KERN_ALIGNOF_lock_class_key 8
#define KERN_SIZEOF_lockdep_map 8
#define KERN_ALIGNOF_lockdep_map 8
#define KERN_SIZEOF_work 16
#define KERN_ALIGNOF_work 8
#define KERN_SIZEOF_delayed_work 32
#define KERN_ALIGNOF_delayed_work 8
#define KERN_SIZEOF_timer 24
#define KERN_ALIGNOF_timer 8
#define KERN_SIZEOF_tasklet 8
#define KERN_ALIGNOF_tasklet 8
#define KERN_SIZEOF_irq_work 8
#define KERN_ALIGNOF_irq_work 8
#define KERN_SIZEOF_completion 8
#define KERN_ALIGNOF_completion 8
#define KERN_SIZEOF_wait_queue 16
#define KERN_ALIGNOF_wait_queue 8
#define KERN_SIZEOF_wait_entry 48
#define KERN_ALIGNOF_wait_entry 8
#define KERN_SIZEOF_xarray 8
#define KERN_ALIGNOF_xarray 8
#define KERN_SIZEOF_ida 8
#define KERN_ALIGNOF_ida 8
#define KERN_SIZEOF_pci_driver 8
#define KERN_ALIGNOF_pci_driver 8
#define KERN_SIZEOF_sg_table 16
#define KERN_ALIGNOF_sg_table 8
#define KERN_SIZEOF_rcu_head 8
#define KERN_ALIGNOF_rcu_head 8
#define KERN_SIZEOF_napi 24
#define KERN_ALIGNOF_napi 8

#define KERN_OFFSETOF_sk_buff_data 0
#define KERN_OFFSETOF_sk_buff_queue_mapping 8
#define KERN_NETDEV_PRIVATE 512

/*
 * Allocation flags: KERNEL may sleep; ATOMIC must not sleep and may use the reserves; NOWAIT does
 * neither.
 */
#define KERN_GFP_DIRECT_RECLAIM 0x01u
#define KERN_GFP_KERNEL 0x01u
#define KERN_GFP_KERNEL_ACCOUNT KERN_GFP_KERNEL
#define KERN_GFP_ATOMIC 0x02u
#define KERN_GFP_NOWAIT 0x00u
#define KERN_GFP_ZERO 0x04u
#define KERN_GFP_NOWARN 0x08u

#define KERN_PAGE_SHIFT 12
#define KERN_CACHE_LINE 64

/* KUnit structures. include/kern/kunit.hpp uses these to lay out cases and suites. */
#define KERN_SIZEOF_kunit_case 24
#define KERN_OFFSETOF_kunit_case_run_case 0
#define KERN_OFFSETOF_kunit_case_name 8
#define KERN_SIZEOF_kunit_suite_name 64
#define KERN_OFFSETOF_kunit_suite_name 0
#define KERN_OFFSETOF_kunit_suite_init 72
#define KERN_OFFSETOF_kunit_suite_test_cases 88
#define KERN_SIZEOF_kunit_suite 104
