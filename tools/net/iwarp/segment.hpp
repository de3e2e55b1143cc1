// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Encodes and parses DDP segments with the RDMAP part of their headers (RFC 5041 section 4, RFC
// 5040 section 4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "net/iwarp/bytes.hpp"
#include "net/iwarp/errors.hpp"

namespace weft::iwarp
{

using Stag = std::uint32_t;

enum class Opcode : std::uint8_t {
	write = 0,
	read_request = 1,
	read_response = 2,
	send = 3,
	send_invalidate = 4,
	send_solicited = 5,
	send_solicited_invalidate = 6,
	terminate = 7,
};

constexpr bool is_send(Opcode opcode)
{
	return opcode >= Opcode::send && opcode <= Opcode::send_solicited_invalidate;
}
constexpr bool is_tagged(Opcode opcode)
{
	return opcode == Opcode::write || opcode == Opcode::read_response;
}
constexpr bool invalidates(Opcode opcode)
{
	return opcode == Opcode::send_invalidate || opcode == Opcode::send_solicited_invalidate;
}
constexpr bool is_solicited(Opcode opcode)
{
	return opcode == Opcode::send_solicited || opcode == Opcode::send_solicited_invalidate;
}

// Queue numbers of untagged messages.
enum Queue : std::uint32_t { kSendQueue = 0, kReadQueue = 1, kTerminateQueue = 2, kQueues = 3 };

struct Segment {
	Opcode opcode;
	bool last;
	Stag stag = 0;            // memory of a tagged message, or the STag to invalidate
	std::uint64_t offset = 0; // tagged
	std::uint32_t queue = 0, sequence = 0, message_offset = 0; // untagged
	View payload{};
};

constexpr std::size_t kTaggedHeader = 14;
constexpr std::size_t kUntaggedHeader = 18;

Bytes encode(const Segment &segment);
// Parses a segment. The returned payload is a part of @ulpdu. Checks the versions and the opcode,
// and that the opcode matches the kind of segment and its queue.
std::variant<Segment, Error> parse_segment(View ulpdu);

// Contents of a Read Request.
struct ReadRequest {
	Stag sink = 0;
	std::uint64_t sink_offset = 0;
	std::uint32_t length = 0;
	Stag source = 0;
	std::uint64_t source_offset = 0;
};

constexpr std::size_t kReadRequestBytes = 28;

Bytes encode(const ReadRequest &request);
// @payload must have kReadRequestBytes.
ReadRequest parse_read_request(View payload);

// Encodes a Terminate, without a copy of the segment that caused it.
Bytes encode(const Error &error);

} // namespace weft::iwarp
