// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/file_descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace weft
{

void FileDescriptor::reset(int fd) noexcept
{
	if (fd_ >= 0)
		::close(fd_);
	fd_ = fd;
}

bool make_nonblocking(const FileDescriptor &fd)
{
	const int flags = ::fcntl(fd.get(), F_GETFL);
	return flags >= 0 && !::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK);
}

} // namespace weft
