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

// Maximum number of descriptors in a message.
constexpr std::size_t kMaxMessageFds = 16;

// Framing - the header and length of a protocol's messages.
struct Framing {
	struct Extent {
		std::size_t size = 0;          // size of the whole message, including the header
		const char *trouble = nullptr; // error of an invalid header, or null
	};

	std::size_t header_size;
	std::size_t most_size; // size of the largest message
	// Parses a header of header_size bytes. Unless it reports an error, the returned size is at
	// least header_size and at most most_size.
	Extent (*measure)(std::span<const std::byte> header);
	// True if a message may carry a socket.
	bool takes_sockets;
};

struct Message {
	// Both are valid until the next call of the reader.
	std::span<const std::byte> head;
	std::span<const std::byte> payload;
	std::vector<FileDescriptor> fds;
	// The cost of the message, in register accesses, by which the time of the loop is shared
	// among cards. A handler increases it if necessary.
	unsigned cost = 1;

	// Bytes that a handler copies and memory that it unmaps are converted to accesses, too.
	void charge_moved(std::uint64_t bytes) { charge(bytes / kBytesPerAccess); }
	void charge_unmapped(std::uint64_t bytes) { charge(bytes / kUnmappedPerAccess); }
	void charge(std::uint64_t accesses)
	{
		cost += static_cast<unsigned>(std::min<std::uint64_t>(accesses, kMostCharged));
	}
	static constexpr std::uint64_t kBytesPerAccess = 8;
	// Unmapping this number of bytes takes about as long as an access.
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
	// @size bytes were read to space(), together with @fds. A read of a Unix stream socket ends
	// with the bytes that carried descriptors, so they belong to the message of the last byte
	// (unix(7)).
	void filled(std::size_t size, std::vector<FileDescriptor> &&fds);
	// Returns the next whole message, or nothing if more bytes are needed or after failed().
	std::optional<Message> next();
	// Returns true if the stream is invalid (see reason()), so that nothing more can be read
	// from it.
	bool failed() const { return reason_ != nullptr; }
	const char *reason() const { return reason_; }

private:
	struct Carried {
		// position in the stream of the last byte that was read with them
		std::uint64_t last_byte;
		std::vector<FileDescriptor> fds;
	};

	std::span<const std::byte> head() const;
	void compact();

	const Framing framing_;
	std::vector<std::byte> buffer_;
	std::size_t begin_ = 0; // start of the data that was not returned yet
	std::size_t end_ = 0;
	std::uint64_t consumed_ = 0; // position of begin_ in the stream
	std::vector<Carried> carried_;
	const char *reason_ = nullptr;
};

} // namespace weft::pci
