// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a class that owns a file descriptor, and closes it when the object is destroyed.
#pragma once

#include <utility>

namespace weft
{

// FileDescriptor - owns one descriptor and closes it.
class FileDescriptor
{
public:
	FileDescriptor() noexcept = default;
	explicit FileDescriptor(int fd) noexcept : fd_(fd) {}
	FileDescriptor(FileDescriptor &&other) noexcept : fd_(other.release()) {}
	FileDescriptor &operator=(FileDescriptor &&other) noexcept
	{
		if (this != &other)
			reset(other.release());
		return *this;
	}
	~FileDescriptor() { reset(); }

	int get() const noexcept { return fd_; }
	explicit operator bool() const noexcept { return fd_ >= 0; }
	int release() noexcept { return std::exchange(fd_, -1); }
	void reset(int fd = -1) noexcept;

private:
	int fd_ = -1;
};

} // namespace weft
