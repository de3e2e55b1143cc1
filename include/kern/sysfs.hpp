// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates files below a device's directory in sysfs. Each file has one value, which all users can
// read and, optionally, root can write.
//
//	kern::Result<> show(kern::sysfs::Output &out) { out.print("%lu\n", KERN_TRY(count())); return {}; }
//	directory_ = KERN_TRY(kern::sysfs::Directory::create("counters", device));
//	kern::sysfs::File file_{kern::method<&Port::show>, this};
//	KERN_TRY(file_.add("count", directory_));
#pragma once
#include <cstdarg>
#include <utility>
#include <kern/abi/sysfs.h>
#include <kern/method.hpp>
#include <kern/result.hpp>
#include <kern/span.hpp>

namespace kern::sysfs
{

class Directory
{
public:
	/*
	 * Creates a directory in the directory of a device, which must outlive it, or in another
	 * directory. May sleep. Errors: ENOMEM, also if the name exists.
	 */
	static Result<Directory> create(const char *name, struct device *device)
	{
		return create(name, kern_sysfs_device(device));
	}
	static Result<Directory> create(const char *name, const Directory &parent)
	{
		return create(name, parent.native_);
	}

	Directory() = default;
	Directory(Directory &&other) noexcept : native_(std::exchange(other.native_, nullptr)) {}
	Directory &operator=(Directory &&other) noexcept
	{
		std::swap(native_, other.native_);
		return *this;
	}
	/*
	 * The directory must be empty, so declare it before its files and subdirectories. May
	 * sleep.
	 */
	~Directory()
	{
		if (native_)
			kern_sysfs_remove_directory(native_);
	}

	kobject *native() const { return native_; }

private:
	explicit Directory(kobject *native) : native_(native) {}
	static Result<Directory> create(const char *name, kobject *parent)
	{
		kobject *native = kern_sysfs_directory(name, parent);
		if (!native)
			return Error{-ENOMEM};
		return Directory(native);
	}

	kobject *native_ = nullptr;
};

/* The contents of a file, at most one page. */
class Output
{
public:
	explicit Output(char *page) : page_(page) {}
	[[gnu::format(printf, 2, 3)]] void print(const char *format, ...)
	{
		std::va_list args;
		va_start(args, format);
		used_ = kern_sysfs_print(page_, used_, format, args);
		va_end(args);
	}
	int used() const { return used_; }

private:
	char *page_;
	int used_ = 0;
};

class File
{
public:
	/*
	 * Reading the file calls Result<> T::show(Output &). An error is returned to the reader.
	 * May sleep.
	 */
	template<auto Show, class T>
	File(Method<Show>, T *object)
	{
		file_.show = [](kern_sysfs_file *file, char *page) -> int {
			Output out(page);
			const Result<> shown = (static_cast<T *>(file->context)->*Show)(out);
			return shown ? out.used() : shown.error();
		};
		file_.context = object;
	}
	/*
	 * Writing the file calls Result<> T::store(ConstBytes) with the data that root writes, at
	 * most a page.
	 */
	template<auto Show, auto Store, class T>
	File(Method<Show> shows, Method<Store>, T *object) : File(shows, object)
	{
		file_.store = [](kern_sysfs_file *file, const char *text, size_t size) -> int {
			const ConstBytes bytes(reinterpret_cast<const std::byte *>(text), size);
			return (static_cast<T *>(file->context)->*Store)(bytes).error();
		};
	}
	/* Waits for running reads and writes. May sleep. */
	~File()
	{
		if (file_.attribute)
			kern_sysfs_remove(&file_);
	}
	File(const File &) = delete;
	File &operator=(const File &) = delete;

	/* Must be called only once. name must stay valid. May sleep. Errors: EEXIST, ENOMEM. */
	Result<> add(const char *name, const Directory &directory)
	{
		KERN_TRY_ERRNO(kern_sysfs_add(&file_, name, directory.native()));
		return {};
	}

	/* For code that adds the file elsewhere (kern::ClassDevice), and for tests. */
	kern_sysfs_file &native() { return file_; }

private:
	kern_sysfs_file file_{};
};

} // namespace kern::sysfs
