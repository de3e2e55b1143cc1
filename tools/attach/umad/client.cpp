// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/umad/client.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ib/types.hpp>

namespace weft::attach::umad
{

int debug_level;

void debug(const char *format, ...)
{
	if (debug_level <= 0)
		return;
	va_list arguments;
	va_start(arguments, format);
	std::fputs("libibumad (weft): ", stderr);
	std::vfprintf(stderr, format, arguments);
	std::fputc('\n', stderr);
	va_end(arguments);
}

bool is_attached()
{
	return std::getenv(kSocketVariable) && std::getenv(kNodeVariable);
}

namespace
{

int connect_to_weftd()
{
	const char *const path = std::getenv(kSocketVariable);
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	if (!path || std::strlen(path) >= sizeof(address.sun_path))
		return -ENODEV;
	std::strcpy(address.sun_path, path);
	const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (socket < 0)
		return -errno;
	if (::connect(socket, reinterpret_cast<const sockaddr *>(&address), sizeof(address))) {
		const int error = errno;
		debug("%s: %s", path, std::strerror(error));
		::close(socket);
		return -error;
	}
	return socket;
}

} // namespace

int ask(Request &request, void *reply, std::size_t size)
{
	const char *const node = std::getenv(kNodeVariable);
	if (!node || std::strlen(node) >= sizeof(request.node))
		return -ENODEV;
	std::strcpy(request.node, node);
	request.version = kVersion;
	const int socket = connect_to_weftd();
	if (socket < 0)
		return socket;
	ssize_t bytes;
	do
		bytes = ::send(socket, &request, sizeof(request), MSG_NOSIGNAL);
	while (bytes < 0 && errno == EINTR);
	// A program that waits to be the subnet manager may be interrupted.
	if (bytes == static_cast<ssize_t>(sizeof(request)))
		do
			bytes = ::recv(socket, reply, size, 0);
		while (bytes < 0 && errno == EINTR && request.kind != Kind::become_sm);
	if (bytes == static_cast<ssize_t>(size))
		return socket;
	// weftd has exited, whether it has read the request or not.
	const bool gone = bytes >= 0 || errno == EPIPE || errno == ECONNRESET;
	const int error = gone ? EIO : errno;
	::close(socket);
	return -error;
}

int describe(Description &description)
{
	Request request{};
	request.kind = Kind::describe;
	const int socket = ask(request, &description, sizeof(description));
	if (socket < 0)
		return -socket;
	::close(socket);
	return description.error;
}

int find_port(const Description &description, int number)
{
	const int count = static_cast<int>(description.ports);
	const auto state = [&](int index) {
		return static_cast<ib::PortState>(description.port[index].state);
	};
	if (description.node_type == static_cast<std::uint32_t>(ib::NodeType::switch_))
		return number <= 0 ? 0 : -1;
	for (int index = 0; index < count; ++index)
		if (number > 0 &&
		    description.port[index].number == static_cast<std::uint32_t>(number))
			return index;
	if (number > 0)
		return -1;
	// Prefer an active port, and then a port with a link.
	for (int index = 0; index < count; ++index)
		if (state(index) == ib::PortState::active)
			return index;
	for (int index = 0; index < count; ++index)
		if (state(index) != ib::PortState::down)
			return index;
	return count > 0 ? 0 : -1;
}

bool is_ca_name(const char *name)
{
	return !name || std::strcmp(name, kCaName) == 0;
}

} // namespace weft::attach::umad
