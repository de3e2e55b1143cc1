// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the lock annotations for tools/, which clang -Wthread-safety checks (`make
// check-host-locks` and every sanitized build). Other compilers ignore them. The code of weft's
// kernel modules has its own macros in kern/annotations.hpp.
#pragma once

#ifdef __clang__
#define WEFT_ANNOTATION(x) __attribute__((x))
#else
#define WEFT_ANNOTATION(x)
#endif

#define WEFT_CAPABILITY(name) WEFT_ANNOTATION(capability(name))
#define WEFT_SCOPED_CAPABILITY WEFT_ANNOTATION(scoped_lockable)
#define WEFT_GUARDED_BY(mutex) WEFT_ANNOTATION(guarded_by(mutex))
#define WEFT_PT_GUARDED_BY(mutex) WEFT_ANNOTATION(pt_guarded_by(mutex))
#define WEFT_REQUIRES(...) WEFT_ANNOTATION(requires_capability(__VA_ARGS__))
#define WEFT_EXCLUDES(...) WEFT_ANNOTATION(locks_excluded(__VA_ARGS__))
#define WEFT_ACQUIRE(...) WEFT_ANNOTATION(acquire_capability(__VA_ARGS__))
#define WEFT_RELEASE(...) WEFT_ANNOTATION(release_capability(__VA_ARGS__))
#define WEFT_NO_THREAD_SAFETY_ANALYSIS WEFT_ANNOTATION(no_thread_safety_analysis)
