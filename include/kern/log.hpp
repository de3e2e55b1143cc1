// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes messages to the kernel's log, with printf's conversions and the kernel's %p extensions:
//
//	kern_error("port %u: %s\n", port, text);		// weft_core: port 1: …
//	kern_dev_error(pci.device(), "reset failed: %d\n", status);	// weft_mlx4 0000:01:00.0: …
//	kern_warning_limited(…)					// at most ten in five seconds from each call site
//
// Messages that a guest, a card or a packet can cause must use the rate-limited form. u64 is %lu.
#pragma once
#include <kern/abi/log.h>
#include <kern/assert.hpp>

#define kern_error(...) kern_log(KERN_LOG_ERROR, KBUILD_MODNAME, __VA_ARGS__)
#define kern_warning(...) kern_log(KERN_LOG_WARNING, KBUILD_MODNAME, __VA_ARGS__)
#define kern_notice(...) kern_log(KERN_LOG_NOTICE, KBUILD_MODNAME, __VA_ARGS__)
#define kern_info(...) kern_log(KERN_LOG_INFO, KBUILD_MODNAME, __VA_ARGS__)

#define kern_dev_error(device, ...) kern_log_device(KERN_LOG_ERROR, device, __VA_ARGS__)
#define kern_dev_warning(device, ...) kern_log_device(KERN_LOG_WARNING, device, __VA_ARGS__)
#define kern_dev_info(device, ...) kern_log_device(KERN_LOG_INFO, device, __VA_ARGS__)

/* Always compiled, so that the format is checked, but printed only in builds with checks. */
#define kern_debug(...)                                                                            \
	do {                                                                                       \
		if (::kern::debug)                                                                 \
			kern_log(KERN_LOG_DEBUG, KBUILD_MODNAME, __VA_ARGS__);                     \
	} while (0)
#define kern_dev_debug(device, ...)                                                                \
	do {                                                                                       \
		if (::kern::debug)                                                                 \
			kern_log_device(KERN_LOG_DEBUG, device, __VA_ARGS__);                      \
	} while (0)

#define KERN_LOG_LIMITED(statement)                                                                \
	do {                                                                                       \
		static constinit kern_log_limit kern_limit{};                                      \
		if (kern_log_allowed(&kern_limit, KBUILD_MODNAME))                                 \
			statement;                                                                 \
	} while (0)
#define kern_error_limited(...) KERN_LOG_LIMITED(kern_error(__VA_ARGS__))
#define kern_warning_limited(...) KERN_LOG_LIMITED(kern_warning(__VA_ARGS__))
#define kern_info_limited(...) KERN_LOG_LIMITED(kern_info(__VA_ARGS__))
#define kern_dev_error_limited(device, ...) KERN_LOG_LIMITED(kern_dev_error(device, __VA_ARGS__))
#define kern_dev_warning_limited(device, ...)                                                      \
	KERN_LOG_LIMITED(kern_dev_warning(device, __VA_ARGS__))
#define kern_dev_info_limited(device, ...) KERN_LOG_LIMITED(kern_dev_info(device, __VA_ARGS__))
