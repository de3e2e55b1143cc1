// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/iwarp/segment.hpp"

namespace weft::iwarp
{

namespace
{

constexpr std::uint8_t kTagged = 0x80, kLast = 0x40, kVersionMask = 0x03, kDdpVersion = 1;
constexpr std::uint8_t kRdmapVersion = 0x40, kRdmapVersionMask = 0xc0, kOpcodeMask = 0x0f;

Queue queue_of(Opcode opcode)
{
	switch (opcode) {
	case Opcode::read_request:
		return kReadQueue;
	case Opcode::terminate:
		return kTerminateQueue;
	default:
		return kSendQueue;
	}
}

} // namespace

Bytes encode(const Segment &segment)
{
	const bool tagged = is_tagged(segment.opcode);
	Bytes bytes;
	bytes.reserve(kUntaggedHeader + segment.payload.size());
	bytes.push_back(static_cast<std::uint8_t>((tagged ? kTagged : 0) |
						  (segment.last ? kLast : 0) | kDdpVersion));
	bytes.push_back(static_cast<std::uint8_t>(kRdmapVersion |
						  static_cast<std::uint8_t>(segment.opcode)));
	put_number(bytes, segment.stag, 4);
	if (tagged) {
		put_number(bytes, segment.offset, 8);
	} else {
		put_number(bytes, segment.queue, 4);
		put_number(bytes, segment.sequence, 4);
		put_number(bytes, segment.message_offset, 4);
	}
	bytes.insert(bytes.end(), segment.payload.begin(), segment.payload.end());
	return bytes;
}

std::variant<Segment, Error> parse_segment(View ulpdu)
{
	if (ulpdu.size() < kTaggedHeader)
		return errors::kDdpCatastrophic;
	const bool tagged = (ulpdu[0] & kTagged) != 0;
	if ((ulpdu[0] & kVersionMask) != kDdpVersion)
		return tagged ? errors::kTaggedVersion : errors::kUntaggedVersion;
	if (!tagged && ulpdu.size() < kUntaggedHeader)
		return errors::kDdpCatastrophic;
	if ((ulpdu[1] & kRdmapVersionMask) != kRdmapVersion)
		return errors::kRdmapVersion;
	const std::uint8_t opcode = ulpdu[1] & kOpcodeMask;
	if (opcode > static_cast<std::uint8_t>(Opcode::terminate))
		return errors::kUnexpectedOpcode;
	Segment segment{.opcode = static_cast<Opcode>(opcode),
			.last = (ulpdu[0] & kLast) != 0,
			.stag = static_cast<Stag>(number_at(ulpdu, 2, 4)),
			.payload = ulpdu.subspan(tagged ? kTaggedHeader : kUntaggedHeader)};
	if (tagged != is_tagged(segment.opcode))
		return errors::kUnexpectedOpcode;
	if (tagged) {
		segment.offset = number_at(ulpdu, 6, 8);
		if (segment.offset + segment.payload.size() < segment.offset)
			return errors::kTaggedWrapped;
		return segment;
	}
	segment.queue = static_cast<std::uint32_t>(number_at(ulpdu, 6, 4));
	segment.sequence = static_cast<std::uint32_t>(number_at(ulpdu, 10, 4));
	segment.message_offset = static_cast<std::uint32_t>(number_at(ulpdu, 14, 4));
	if (segment.queue >= kQueues)
		return errors::kQueueNumber;
	if (segment.queue != queue_of(segment.opcode))
		return errors::kUnexpectedOpcode;
	return segment;
}

Bytes encode(const ReadRequest &request)
{
	Bytes bytes;
	put_number(bytes, request.sink, 4);
	put_number(bytes, request.sink_offset, 8);
	put_number(bytes, request.length, 4);
	put_number(bytes, request.source, 4);
	put_number(bytes, request.source_offset, 8);
	return bytes;
}

ReadRequest parse_read_request(View payload)
{
	return {.sink = static_cast<Stag>(number_at(payload, 0, 4)),
		.sink_offset = number_at(payload, 4, 8),
		.length = static_cast<std::uint32_t>(number_at(payload, 12, 4)),
		.source = static_cast<Stag>(number_at(payload, 16, 4)),
		.source_offset = number_at(payload, 20, 8)};
}

Bytes encode(const Error &error)
{
	Bytes bytes{static_cast<std::uint8_t>(error.layer << 4 | error.type), error.code, 0, 0};
	return bytes;
}

} // namespace weft::iwarp
