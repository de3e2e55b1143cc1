// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the error codes of a Terminate message (RFC 5040 section 4.8, RFC 5041 section 6.2, RFC
// 5044 section 8).
#pragma once

#include <cstdint>

namespace weft::iwarp
{

struct Error {
	std::uint8_t layer; // 0: RDMAP, 1: DDP, 2: MPA
	std::uint8_t type;
	std::uint8_t code;
	bool operator==(const Error &) const = default;
};

namespace errors
{

constexpr Error kLocalCatastrophic{0, 0, 0x00};
// An invalid STag as the source of a Read, or in a Send with Invalidate.
constexpr Error kInvalidStag{0, 1, 0x00};
constexpr Error kBounds{0, 1, 0x01};
constexpr Error kAccess{0, 1, 0x02};
constexpr Error kWrapped{0, 1, 0x04};
constexpr Error kCannotInvalidate{0, 1, 0x09};
constexpr Error kRdmapVersion{0, 2, 0x05};
constexpr Error kUnexpectedOpcode{0, 2, 0x06};
constexpr Error kStreamCatastrophic{0, 2, 0x07};

constexpr Error kDdpCatastrophic{1, 0, 0x00};
constexpr Error kTaggedInvalidStag{1, 1, 0x00};
constexpr Error kTaggedBounds{1, 1, 0x01};
constexpr Error kTaggedWrapped{1, 1, 0x03};
constexpr Error kTaggedVersion{1, 1, 0x04};
constexpr Error kQueueNumber{1, 2, 0x01};
constexpr Error kNoBuffer{1, 2, 0x02};
constexpr Error kSequenceNumber{1, 2, 0x03};
constexpr Error kMessageOffset{1, 2, 0x04};
constexpr Error kMessageTooLong{1, 2, 0x05};
constexpr Error kUntaggedVersion{1, 2, 0x06};

constexpr Error kConnectionLost{2, 0, 0x01};
constexpr Error kCrc{2, 0, 0x02};
constexpr Error kMarker{2, 0, 0x03};
constexpr Error kStartFrame{2, 0, 0x04};

} // namespace errors

} // namespace weft::iwarp
