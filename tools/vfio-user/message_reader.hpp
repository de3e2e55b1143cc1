// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Cuts the byte stream of a client into messages. Knows no socket: a socket, a test or a fuzzer
// fills it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/file_descriptor.hpp"
#include "vfio-user/protocol.hpp"

namespace weft::vfio_user
{

struct Message {
	Header header;
	std::span<const std::byte> payload; // valid until the reader is asked for anything else
	std::vector<FileDescriptor> fds;
};

class MessageReader
{
public:
	// Where the next bytes of the stream go; never empty.
	std::span<std::byte> space();
	// @size bytes were put at space(), and @fds came with them. Of a Unix stream socket one
	// read ends with the bytes that carried descriptors, so they belong to the message that the
	// last byte is part of (unix(7)).
	void filled(std::size_t size, std::vector<FileDescriptor> &&fds);
	// The next whole message, or nothing if more bytes are needed or failed().
	std::optional<Message> next();
	// The stream makes no sense (why: reason()), and so nothing more can be read from it.
	bool failed() const { return reason_ != nullptr; }
	const char *reason() const { return reason_; }

private:
	struct Carried {
		std::uint64_t last_byte; // position in the stream of the last byte they came with
		std::vector<FileDescriptor> fds;
	};

	static const char *check(const Header &header);
	void compact();

	std::vector<std::byte> buffer_;
	std::size_t begin_ = 0; // of what has not been handed out
	std::size_t end_ = 0;
	std::uint64_t consumed_ = 0; // position in the stream of begin_
	std::vector<Carried> carried_;
	const char *reason_ = nullptr;
};

} // namespace weft::vfio_user
