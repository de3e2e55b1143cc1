/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Declares functions that write messages to the kernel's log. */
#pragma once
#include <kern/abi/base.h>

KERN_C_BEGIN

/* The levels are those of syslog. */
enum kern_log_level {
	KERN_LOG_ERROR = 3,
	KERN_LOG_WARNING = 4,
	KERN_LOG_NOTICE = 5,
	KERN_LOG_INFO = 6,
	KERN_LOG_DEBUG = 7,
};

void kern_log(enum kern_log_level level, const char *module, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The message begins with the device's driver and name. */
void kern_log_device(enum kern_log_level level, const struct device *device, const char *format,
		     ...) __attribute__((format(printf, 3, 4)));

/*
 * Formats like snprintf(), with the kernel's conversions. Writes as much as fits, always
 * null-terminated, and returns the length of the complete text.
 */
int kern_format(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int kern_format_list(char *text, size_t size, const char *format, __builtin_va_list args);

/* State of the rate limit of one call site. kern_log_allowed() returns true if it may log. */
struct kern_log_limit {
	unsigned long window_start;
	unsigned int printed;
	unsigned int missed;
};
bool kern_log_allowed(struct kern_log_limit *limit, const char *module);

KERN_C_END
