// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Lets a KUnit case run as a process, so that it can test access to user memory.
#pragma once
#include <kern/abi/kunit_process.h>
#include <kern/kunit.hpp>

namespace kern::kunit
{

/*
 * Runs the test's task with the memory of a process while this object exists; see
 * kern_kunit_process_enter().
 */
class Process
{
public:
	Process() : entered_(kern_kunit_process_enter()) {}
	~Process()
	{
		if (entered_)
			kern_kunit_process_leave();
	}
	Process(const Process &) = delete;
	Process &operator=(const Process &) = delete;

	explicit operator bool() const { return entered_; }
	u64 pinned_pages() const { return kern_kunit_process_pinned(); }
	/* Calls body() as a process that may lock this number of bytes. */
	template<class Body>
	void with_limit(u64 bytes, Body body) const
	{
		kern_kunit_process_limit(
			bytes, [](void *context) { (*static_cast<Body *>(context))(); }, &body);
	}

private:
	bool entered_;
};

/* Memory of the process that has not been accessed. It exists as long as this object. */
class Mapping
{
public:
	explicit Mapping(std::size_t size, bool writable = true, bool shared = false)
	    : address_(kern_kunit_process_map(size, writable, shared)), size_(size)
	{
	}
	~Mapping()
	{
		if (address_)
			kern_kunit_process_unmap(address_, size_);
	}
	Mapping(const Mapping &) = delete;
	Mapping &operator=(const Mapping &) = delete;

	u64 address() const { return address_; }
	void *pointer() const { return reinterpret_cast<void *>(address_); }
	std::size_t size() const { return size_; }

private:
	u64 address_;
	std::size_t size_;
};

/* An opened file, for tests that need a file without a device. */
class OpenedFile
{
public:
	explicit OpenedFile(bool waits = true) : native_(kern_kunit_file_create(waits)) {}
	~OpenedFile()
	{
		if (native_)
			kern_kunit_file_destroy(native_);
	}
	OpenedFile(const OpenedFile &) = delete;
	OpenedFile &operator=(const OpenedFile &) = delete;

	/* Returns nullptr if there was no memory. */
	kern_file *native() const { return native_; }

private:
	kern_file *native_;
};

} // namespace kern::kunit
