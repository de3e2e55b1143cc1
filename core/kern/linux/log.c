// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Formats the messages of C++ code and writes them to the kernel's log (include/kern/abi/log.h).
#include <linux/device.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/printk.h>
#include <kern/abi/log.h>

void kern_log(enum kern_log_level level, const char *module, const char *format, ...)
{
	va_list args;
	struct va_format text = {.fmt = format, .va = &args};

	va_start(args, format);
	printk("%c%c%s: %pV", KERN_SOH_ASCII, '0' + level, module, &text);
	va_end(args);
}
EXPORT_SYMBOL_GPL(kern_log);

void kern_log_device(enum kern_log_level level, const struct device *device, const char *format,
		     ...)
{
	const char prefix[] = {KERN_SOH_ASCII, '0' + level, '\0'};
	va_list args;
	struct va_format text = {.fmt = format, .va = &args};

	va_start(args, format);
	if (device)
		dev_printk_emit(level, device, "%s %s: %pV", dev_driver_string(device),
				dev_name(device), &text);
	else
		printk("%s(no device): %pV", prefix, &text);
	va_end(args);
}
EXPORT_SYMBOL_GPL(kern_log_device);

int kern_format_list(char *text, size_t size, const char *format, va_list args)
{
	return vsnprintf(text, size, format, args);
}
EXPORT_SYMBOL_GPL(kern_format_list);

int kern_format(char *text, size_t size, const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	length = kern_format_list(text, size, format, args);
	va_end(args);
	return length;
}
EXPORT_SYMBOL_GPL(kern_format);

/*
 * Permits ten messages in five seconds. At the limit, concurrent calls may both succeed, which is
 * harmless.
 */
bool kern_log_allowed(struct kern_log_limit *limit, const char *module)
{
	if (!limit->window_start || time_after(jiffies, READ_ONCE(limit->window_start) + 5 * HZ)) {
		unsigned int missed = xchg(&limit->missed, 0);

		WRITE_ONCE(limit->window_start, jiffies | 1);
		WRITE_ONCE(limit->printed, 0);
		if (missed)
			printk(KERN_WARNING "%s: %u messages like the next were left out\n", module,
			       missed);
	}
	if (READ_ONCE(limit->printed) >= 10) {
		WRITE_ONCE(limit->missed, READ_ONCE(limit->missed) + 1);
		return false;
	}
	WRITE_ONCE(limit->printed, READ_ONCE(limit->printed) + 1);
	return true;
}
EXPORT_SYMBOL_GPL(kern_log_allowed);
