// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Splits the byte stream of a client into messages. It uses no socket: a socket, a test or a fuzzer
// passes it the bytes. It knows only the protocol's message lengths.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "base/file_descriptor.hpp"

namespace weft::pci
{

// Descriptors that a message may bring.
constexpr std::size_t kMaxMessageFds = 16;

// Framing - how a protocol's messages begin, and how long they are.
struct Framing {
	struct Extent {
		std::size_t size = 0;          // of the whole message, its header included
		const char *trouble = nullptr; // why no message begins so, or null
	};

	std::size_t header_size;
	std::size_t most_size; // of a whole message
	// Parses a header of header_size bytes. Unless it reports an error, the returned size is at
	// least header_size and at most most_size.
	Extent (*measure)(std::span<const std::byte> header);
	// True if a message may carry a socket.
	bool takes_sockets;
};

struct Message {
	// Both are valid until the reader is asked for anything else.
	std::span<const std::byte> head;
	std::span<const std::byte> payload;
	std::vector<FileDescriptor> fds;
	// The cost of the message in register accesses, by which the loop's time is shared among
	// cards. The handler sets it if it is more than one.
	unsigned cost = 1;

	// Bytes that its handler moves and memory that it unmaps count as accesses as well.
	void charge_moved(std::uint64_t bytes) { charge(bytes / kBytesPerAccess); }
	void charge_unmapped(std::uint64_t bytes) { charge(bytes / kUnmappedPerAccess); }
	void charge(std::uint64_t accesses)
	{
		cost += static_cast<unsigned>(std::min<std::uint64_t>(accesses, kMostCharged));
	}
	static constexpr std::uint64_t kBytesPerAccess = 8;
	// Unmapping so many bytes from the process takes about as long as an access.
	static constexpr std::uint64_t kUnmappedPerAccess = 1 << 18;
	static constexpr std::uint64_t kMostCharged = 1 << 20;

	template<typename Header>
	Header header() const
	{
		static_assert(std::is_trivially_copyable_v<Header>);
		Header header;
		std::memcpy(&header, head.data(), sizeof(header));
		return header;
	}
};

class MessageReader
{
public:
	explicit MessageReader(const Framing &framing) : framing_(framing) {}

	const Framing &framing() const { return framing_; }

	// Space for the next bytes of the stream; never empty.
	std::span<std::byte> space();
	// @size bytes were put at space(), and @fds came with them. A read of a Unix stream socket
	// ends with the bytes that carried descriptors, so they belong to the message that the last
	// byte is part of (unix(7)).
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

	std::span<const std::byte> head() const;
	void compact();

	const Framing framing_;
	std::vector<std::byte> buffer_;
	std::size_t begin_ = 0; // of what has not been handed out
	std::size_t end_ = 0;
	std::uint64_t consumed_ = 0; // position in the stream of begin_
	std::vector<Carried> carried_;
	const char *reason_ = nullptr;
};

} // namespace weft::pci
