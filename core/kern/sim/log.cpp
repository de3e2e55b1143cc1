// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the kernel's log and debugfs for the simulation (include/kern/abi/log.h, debugfs.h).
// The log of a run is stored, and becomes part of the report if the run fails.
#include <cstdarg>
#include <cstdio>
#include <kern/abi/debugfs.h>
#include <kern/abi/kunit.h>
#include <kern/abi/log.h>
#include <kern/abi/sysfs.h>
#include "device.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

using namespace sim;

struct seq_file {
	char *text;
	size_t size;
	size_t used;
};

namespace
{

constexpr std::size_t most = 4096;
std::string text;

void say(const char *format, va_list args)
{
	char line[512];

	std::vsnprintf(line, sizeof(line), format, args);
	if (text.size() > most)
		text.erase(0, text.find('\n') + 1);
	text += line;
	if (text.back() != '\n')
		text += '\n';
}

} // namespace

namespace sim
{

void reset_messages()
{
	text.clear();
}

std::string messages()
{
	return text;
}

} // namespace sim

extern "C" {

void kern_log(enum kern_log_level, const char *module, const char *format, ...)
{
	va_list args;

	text += std::string(module) + ": ";
	va_start(args, format);
	say(format, args);
	va_end(args);
}

void kern_log_device(enum kern_log_level, const struct device *device, const char *format, ...)
{
	va_list args;

	text += (device ? device->name : "(no device)") + ": ";
	va_start(args, format);
	say(format, args);
	va_end(args);
}

int kern_format(char *to, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	const int length = std::vsnprintf(to, size, format, args);
	va_end(args);
	return length;
}

int kern_format_list(char *to, size_t size, const char *format, __builtin_va_list args)
{
	return std::vsnprintf(to, size, format, args);
}

bool kern_log_allowed(struct kern_log_limit *, const char *)
{
	return true;
}

/* Returns any non-null pointer, because files of debugfs are read only by kern_kunit_show(). */
struct dentry *kern_debugfs_directory(const char *, struct dentry *)
{
	return reinterpret_cast<struct dentry *>(&text);
}

void kern_debugfs_add(struct kern_debugfs_file *file, const char *, struct dentry *)
{
	file->entry = reinterpret_cast<struct dentry *>(&text);
}

void kern_debugfs_remove(struct dentry *)
{
	SIM_STEP(nullptr);
}

void kern_debugfs_print(struct seq_file *out, const char *format, __builtin_va_list args)
{
	const size_t space = out->used < out->size ? out->size - out->used : 0;
	const int length = std::vsnprintf(out->text + out->used, space, format, args);

	out->used = out->used + static_cast<size_t>(length) < out->size
			    ? out->used + static_cast<size_t>(length)
			    : out->size - 1;
}

size_t kern_kunit_show(struct kern_debugfs_file *file, char *to, size_t size)
{
	struct seq_file out = {to, size, 0};

	to[0] = '\0';
	file->show(file, &out);
	return out.used;
}
}
