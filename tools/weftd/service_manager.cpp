// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/service_manager.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>

#include <spdlog/spdlog.h>

#include "base/file_descriptor.hpp"

namespace weft::weftd
{

void notify_service_manager(std::string_view state)
{
	const char *const given = std::getenv("NOTIFY_SOCKET");
	if (!given || !*given)
		return;
	const std::string_view name = given;
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	if (name.size() >= sizeof(address.sun_path))
		return spdlog::warn("NOTIFY_SOCKET: the name {} is too long", name);
	std::ranges::copy(name, address.sun_path);
	// The name of an abstract socket begins with a zero byte.
	if (name.front() == '@')
		address.sun_path[0] = 0;
	const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
	const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (!socket || ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
				reinterpret_cast<const sockaddr *>(&address), length) < 0)
		spdlog::warn("NOTIFY_SOCKET: {}: {}", name, std::strerror(errno));
}

} // namespace weft::weftd
