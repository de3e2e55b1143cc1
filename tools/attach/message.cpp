// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/message.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file_descriptor.hpp"

namespace weft::attach
{

namespace
{

// With these seals, no process can truncate or change the file.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

FileDescriptor file_of(const std::byte *bytes, std::size_t size)
{
	FileDescriptor file(::memfd_create("weft-mad", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	for (std::size_t at = 0; file && at < size;) {
		const auto written = ::write(file.get(), bytes + at, size - at);
		if (written <= 0) {
			const int error = written < 0 ? errno : ENOSPC;
			file.reset();
			errno = error;
		} else {
			at += static_cast<std::size_t>(written);
		}
	}
	if (file && ::fcntl(file.get(), F_ADD_SEALS, kSeals))
		file.reset();
	return file;
}

// Files without these seals are not read, because reads of their file system could block forever.
bool read_file(int file, std::vector<std::byte> &bytes)
{
	const int seals = ::fcntl(file, F_GET_SEALS);
	if (seals < 0 || (seals & kSeals) != kSeals)
		return false;
	for (std::size_t at = 0; at < bytes.size();) {
		const auto got =
			::pread(file, bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
		if (got <= 0)
			return false;
		at += static_cast<std::size_t>(got);
	}
	return true;
}

union Control {
	cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

} // namespace

int send_message(int socket, const UserMad &header, const std::byte *bytes, std::size_t size)
{
	iovec parts[] = {{const_cast<UserMad *>(&header), sizeof(header)},
			 {const_cast<std::byte *>(bytes), size}};
	msghdr message{};
	message.msg_iov = parts;
	message.msg_iovlen = 2;
	Control control{};
	FileDescriptor file;
	if (size > kMostInline) {
		file = file_of(bytes, size);
		if (!file)
			return errno;
		message.msg_iovlen = 1;
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		cmsghdr *const part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		const int number = file.get();
		std::memcpy(CMSG_DATA(part), &number, sizeof(number));
	}
	for (;;) {
		if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			return 0;
		if (errno != EINTR)
			return errno;
	}
}

int receive_message(int socket, Message &message)
{
	message.bytes.resize(kMostInline);
	iovec parts[] = {{&message.header, sizeof(message.header)},
			 {message.bytes.data(), message.bytes.size()}};
	msghdr received{};
	Control control{};
	received.msg_iov = parts;
	received.msg_iovlen = 2;
	received.msg_control = control.bytes;
	received.msg_controllen = sizeof(control.bytes);
	ssize_t size;
	do
		size = ::recvmsg(socket, &received, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno;
	FileDescriptor file;
	for (cmsghdr *part = CMSG_FIRSTHDR(&received); part; part = CMSG_NXTHDR(&received, part))
		if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
		    part->cmsg_len == CMSG_LEN(sizeof(int))) {
			int number = -1;
			std::memcpy(&number, CMSG_DATA(part), sizeof(number));
			file.reset(number);
		}
	if (size == 0)
		return ECONNRESET;
	if ((received.msg_flags & MSG_TRUNC) != 0 ||
	    static_cast<std::size_t>(size) < sizeof(message.header))
		return EPROTO;
	if (!file) {
		message.bytes.resize(static_cast<std::size_t>(size) - sizeof(message.header));
		return 0;
	}
	const std::size_t length = message.header.length;
	if (static_cast<std::size_t>(size) != sizeof(message.header) ||
	    length <= sizeof(message.header) || length - sizeof(message.header) > kMostBytes)
		return EPROTO;
	message.bytes.resize(length - sizeof(message.header));
	return read_file(file.get(), message.bytes) ? 0 : EPROTO;
}

} // namespace weft::attach
