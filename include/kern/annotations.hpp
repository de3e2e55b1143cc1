// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines annotations of lock contracts, which clang -Wthread-safety checks (`make check`). The
// compiler that builds the modules ignores them.
#pragma once

#ifdef __clang__
#define KERN_ANNOTATION(x) __attribute__((x))
#else
#define KERN_ANNOTATION(x)
#endif

#define KERN_CAPABILITY(name) KERN_ANNOTATION(capability(name))
#define KERN_SCOPED_CAPABILITY KERN_ANNOTATION(scoped_lockable)
#define KERN_GUARDED_BY(lock) KERN_ANNOTATION(guarded_by(lock))
#define KERN_PT_GUARDED_BY(lock) KERN_ANNOTATION(pt_guarded_by(lock))
#define KERN_ACQUIRED_BEFORE(...) KERN_ANNOTATION(acquired_before(__VA_ARGS__))
#define KERN_ACQUIRED_AFTER(...) KERN_ANNOTATION(acquired_after(__VA_ARGS__))
#define KERN_REQUIRES(...) KERN_ANNOTATION(requires_capability(__VA_ARGS__))
#define KERN_REQUIRES_SHARED(...) KERN_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define KERN_ACQUIRE(...) KERN_ANNOTATION(acquire_capability(__VA_ARGS__))
#define KERN_ACQUIRE_SHARED(...) KERN_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define KERN_RELEASE(...) KERN_ANNOTATION(release_capability(__VA_ARGS__))
#define KERN_RELEASE_SHARED(...) KERN_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define KERN_TRY_ACQUIRE(...) KERN_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define KERN_EXCLUDES(...) KERN_ANNOTATION(locks_excluded(__VA_ARGS__))
#define KERN_ASSERT_CAPABILITY(x) KERN_ANNOTATION(assert_capability(x))
#define KERN_RETURN_CAPABILITY(x) KERN_ANNOTATION(lock_returned(x))
#define KERN_NO_THREAD_SAFETY_ANALYSIS KERN_ANNOTATION(no_thread_safety_analysis)
