// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/unix_listener.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace weft
{

namespace
{

[[noreturn]] void fail(int error, const std::filesystem::path &path)
{
	throw std::system_error(error, std::generic_category(), path.string());
}

sockaddr_un address_of(const std::filesystem::path &path)
{
	sockaddr_un address{};
	address.sun_family = AF_UNIX;
	if (path.native().size() >= sizeof(address.sun_path))
		fail(ENAMETOOLONG, path);
	std::memcpy(address.sun_path, path.c_str(), path.native().size());
	return address;
}

FileDescriptor unix_socket(int flags, UnixListener::Type type = UnixListener::Type::stream)
{
	const int kind = type == UnixListener::Type::stream ? SOCK_STREAM : SOCK_SEQPACKET;
	FileDescriptor socket(::socket(AF_UNIX, kind | SOCK_CLOEXEC | flags, 0));
	if (!socket)
		throw std::system_error(errno, std::generic_category(), "socket");
	return socket;
}

int try_connect(const FileDescriptor &socket, const std::filesystem::path &path)
{
	const auto address = address_of(path);
	const auto *generic = reinterpret_cast<const sockaddr *>(&address);
	return ::connect(socket.get(), generic, sizeof(address)) ? errno : 0;
}

int try_bind(const FileDescriptor &socket, const std::filesystem::path &path)
{
	const auto address = address_of(path);
	const auto *generic = reinterpret_cast<const sockaddr *>(&address);
	return ::bind(socket.get(), generic, sizeof(address)) ? errno : 0;
}

// Returns true if no process listens on the socket file, which then refuses connections.
bool is_stale(const std::filesystem::path &path)
{
	return std::filesystem::is_socket(path) &&
	       try_connect(unix_socket(SOCK_NONBLOCK), path) == ECONNREFUSED;
}

} // namespace

namespace
{

mode_t mode_for(const std::filesystem::path &path, UnixListener::Access access)
{
	struct stat directory{};
	const bool with_group = access == UnixListener::Access::directory_group &&
				!::stat(path.parent_path().c_str(), &directory) &&
				directory.st_mode & S_IXGRP;
	return S_IRUSR | S_IWUSR | (with_group ? S_IRGRP | S_IWGRP : 0);
}

} // namespace

UnixListener::UnixListener(const std::filesystem::path &path, Access access, Type type)
    : socket_(unix_socket(SOCK_NONBLOCK, type))
{
	int error = try_bind(socket_, path);
	if (error == EADDRINUSE && is_stale(path)) {
		std::filesystem::remove(path);
		error = try_bind(socket_, path);
	}
	if (error)
		fail(error, path);
	path_ = path;
	// No process can connect before listen(), so the mode is set in time.
	if (::chmod(path.c_str(), mode_for(path, access)) || ::listen(socket_.get(), 16)) {
		error = errno;
		remove_file();
		fail(error, path);
	}
}

UnixListener::~UnixListener()
{
	remove_file();
}

UnixListener &UnixListener::operator=(UnixListener &&other) noexcept
{
	if (this != &other) {
		remove_file();
		socket_ = std::move(other.socket_);
		path_ = std::exchange(other.path_, {});
	}
	return *this;
}

void UnixListener::remove_file() noexcept
{
	std::error_code ignored;
	if (socket_ && !path_.empty())
		std::filesystem::remove(path_, ignored);
}

FileDescriptor UnixListener::accept()
{
	return FileDescriptor(
		::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

FileDescriptor connect_unix(const std::filesystem::path &path, UnixListener::Type type)
{
	auto socket = unix_socket(0, type);
	if (const int error = try_connect(socket, path))
		fail(error, path);
	return socket;
}

} // namespace weft
