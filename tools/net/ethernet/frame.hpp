// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines Ethernet frames on links: from the destination address to the end of the payload, without
// the frame check sequence (IEEE 802.3 clause 3), as virtual machines send them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft::ethernet
{

// A 48-bit address; the first octet on the wire is the most significant one.
using Address = std::uint64_t;

using Frame = std::vector<std::uint8_t>;
// A frame, which may be in the queues of several ports. Never null.
using FramePtr = std::shared_ptr<const Frame>;

// The length of two addresses and a type.
constexpr std::size_t kLeastFrame = 14;
// The length of 9000 bytes of payload and a header with two VLAN tags.
constexpr std::size_t kMostFrame = 9022;

inline Address address_at(const Frame &frame, std::size_t offset)
{
	Address address = 0;
	for (std::size_t i = 0; i < 6; ++i)
		address = address << 8 | frame[offset + i];
	return address;
}
// Returns the destination address. The frame must have at least kLeastFrame bytes, as every frame
// that a port sends.
inline Address destination_of(const Frame &frame)
{
	return address_at(frame, 0);
}
inline Address source_of(const Frame &frame)
{
	return address_at(frame, 6);
}

// Returns true for multicast and broadcast addresses.
inline bool is_group(Address address)
{
	return address >> 40 & 1;
}
// Returns true for 01-80-C2-00-00-00 to -0F, which bridges do not forward (IEEE 802.1Q table 8-1).
inline bool is_of_one_link(Address address)
{
	return address >> 4 == 0x0180c2000000 >> 4;
}

} // namespace weft::ethernet
