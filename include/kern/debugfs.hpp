// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates files below /sys/kernel/debug that show internal state. If the kernel has no debugfs, the
// files do not exist and everything else works without them.
//
//	void show(kern::debugfs::Output &out) { out.print("%u\n", number_); }
//	kern::debugfs::File file_{kern::method<&Device::show>, this};
//	file_.add("number", directory_);
#pragma once
#include <cstdarg>
#include <utility>
#include <kern/abi/debugfs.h>
#include <kern/method.hpp>

namespace kern::debugfs
{

class Directory
{
public:
	Directory() = default;
	explicit Directory(const char *name) : entry_(kern_debugfs_directory(name, nullptr)) {}
	Directory(const char *name, const Directory &parent)
	    : entry_(kern_debugfs_directory(name, parent.entry_))
	{
	}
	Directory(Directory &&other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
	Directory &operator=(Directory &&other) noexcept
	{
		std::swap(entry_, other.entry_);
		return *this;
	}
	/*
	 * Removes the directory with all entries. Its files must have been removed before, so the
	 * directory must be declared before them.
	 */
	~Directory() { kern_debugfs_remove(entry_); }

	dentry *native() const { return entry_; }

private:
	dentry *entry_ = nullptr;
};

class Output
{
public:
	explicit Output(seq_file *native) : native_(native) {}
	[[gnu::format(printf, 2, 3)]] void print(const char *format, ...)
	{
		std::va_list args;
		va_start(args, format);
		kern_debugfs_print(native_, format, args);
		va_end(args);
	}
	seq_file *native() const { return native_; }

private:
	seq_file *native_;
};

class File
{
public:
	/* Reading the file calls void T::show(Output &). */
	template<auto Show, class T>
	File(Method<Show>, T *object)
	{
		file_.show = [](kern_debugfs_file *file, seq_file *native) {
			Output out(native);
			(static_cast<T *>(file->context)->*Show)(out);
		};
		file_.context = object;
	}
	/*
	 * Writing the file calls int T::write(const char *text, size_t size), which returns 0 or a
	 * negative errno.
	 */
	template<auto Show, auto Write, class T>
	File(Method<Show> show, Method<Write>, T *object) : File(show, object)
	{
		file_.write = [](kern_debugfs_file *file, const char *text, size_t size) -> int {
			return (static_cast<T *>(file->context)->*Write)(text, size);
		};
	}
	/* Waits for running reads and writes. */
	~File()
	{
		if (file_.entry)
			kern_debugfs_remove(file_.entry);
	}
	File(const File &) = delete;
	File &operator=(const File &) = delete;

	/* Must be called only once. May sleep. */
	void add(const char *name, const Directory &directory)
	{
		kern_debugfs_add(&file_, name, directory.native());
	}

	/* Used by tests. */
	kern_debugfs_file &native() { return file_; }

private:
	kern_debugfs_file file_{};
};

} // namespace kern::debugfs
