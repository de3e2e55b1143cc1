// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Creates listening Unix sockets, and connects to them.
#pragma once

#include <filesystem>

#include "base/file_descriptor.hpp"

namespace weft
{

// UnixListener - a listening, non-blocking Unix socket and its file. The file replaces one that was
// left by a process that has exited, and is removed with the listener.
class UnixListener
{
public:
	enum class Access {
		owner,           // only the owner may connect
		directory_group, // the group may connect as well, if the directory permits it
	};

	enum class Type { stream, messages };

	UnixListener() = default;
	// Throws std::system_error: EADDRINUSE if a running process serves @path, ENAMETOOLONG if
	// it does not fit into a socket address.
	explicit UnixListener(const std::filesystem::path &path, Access access = Access::owner,
			      Type type = Type::stream);
	~UnixListener();
	UnixListener(UnixListener &&) noexcept = default;
	UnixListener &operator=(UnixListener &&other) noexcept;

	int fd() const { return socket_.get(); }
	const std::filesystem::path &path() const { return path_; }

	// Accepts the next connection. Returns an empty descriptor if there is none.
	FileDescriptor accept();

private:
	void remove_file() noexcept;

	FileDescriptor socket_;
	std::filesystem::path path_;
};

// Connects to the socket at @path. Throws std::system_error.
FileDescriptor connect_unix(const std::filesystem::path &path,
			    UnixListener::Type type = UnixListener::Type::stream);

} // namespace weft
