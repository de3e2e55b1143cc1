// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/file_descriptor.hpp"

#include "base/closing.hpp"

namespace weft
{

void FileDescriptor::reset(int fd) noexcept
{
	if (fd_ >= 0)
		close_descriptor(fd_);
	fd_ = fd;
}

} // namespace weft
