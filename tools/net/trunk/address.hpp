// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A numeric IP address with a TCP port, as lab files give it: "192.0.2.1:7470" or
// "[2001:db8::1]:7470".
#pragma once

#include <string>

#include <sys/socket.h>

#include "base/file_descriptor.hpp"

namespace weft::trunk
{

class Address
{
public:
	Address() = default;
	// Throws std::invalid_argument with the reason. Names are not resolved: that may take long.
	static Address parse(const std::string &text);
	// Returns the address that a connected socket has here, or at its other end.
	static Address local(int socket);
	static Address peer(int socket);

	std::string text() const;

	// Both non-blocking. Throw std::system_error. A connection that is under way is no error.
	FileDescriptor listen(int backlog) const;
	FileDescriptor connect() const;

private:
	FileDescriptor make_socket() const;

	sockaddr_storage storage_{};
	socklen_t size_ = 0;
};

} // namespace weft::trunk
