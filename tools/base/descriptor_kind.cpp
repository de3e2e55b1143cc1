// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/descriptor_kind.hpp"

#include <array>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace weft
{

// The link of a file begins with a slash, so a file cannot be mistaken for another kind
// (proc_pid_fd(5)).
DescriptorKind kind_of(int fd)
{
	std::array<char, 32> link;
	std::array<char, 32> target;
	std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
	const auto size = ::readlink(link.data(), target.data(), target.size());
	if (size <= 0)
		return DescriptorKind::other;
	const std::string_view name(target.data(), static_cast<std::size_t>(size));
	if (name == "anon_inode:[eventfd]")
		return DescriptorKind::event;
	if (name.starts_with("pipe:["))
		return DescriptorKind::pipe;
	if (name.starts_with("socket:[") || name == "anon_inode:[io_uring]")
		return DescriptorKind::socket;
	return DescriptorKind::other;
}

bool is_of_the_kernel(int fd)
{
	if (::fcntl(fd, F_GET_SEALS) >= 0)
		return true;
	struct statx file, root;
	const auto look = [](int at, const char *path, struct statx &what) {
		return !::statx(at, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
				STATX_TYPE | STATX_MNT_ID, &what);
	};
	if (!look(fd, "", file) || !S_ISREG(file.stx_mode))
		return false;
	const bool of_a_disk = file.stx_dev_major != 0;
	return of_a_disk ||
	       (look(AT_FDCWD, "/", root) && (file.stx_mask & root.stx_mask & STATX_MNT_ID) &&
		file.stx_mnt_id == root.stx_mnt_id);
}

bool make_send_only(int fd)
{
	const auto option = [fd](int name) {
		int value = -1;
		socklen_t size = sizeof(value);
		return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) ? -1 : value;
	};
	sockaddr_un peer;
	socklen_t peer_size = sizeof(peer);
	int waiting = 0;
	// The order matters: after the shutdown, the peer cannot send anything (unix(7), EPIPE).
	return option(SO_DOMAIN) == AF_UNIX && option(SO_TYPE) == SOCK_STREAM &&
	       !::getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &peer_size) &&
	       !::shutdown(fd, SHUT_RD) && !::ioctl(fd, SIOCINQ, &waiting) && !waiting;
}

} // namespace weft
