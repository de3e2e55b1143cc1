// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides frames, and ports that store the received frames, for the tests of this directory.
#pragma once

#include <string>
#include <vector>

#include "base/loop.hpp"
#include "net/ethernet/frame.hpp"
#include "net/ethernet/link.hpp"

namespace weft::ethernet
{

constexpr Address kBroadcast = 0xffffffffffff;

// Returns a frame whose payload consists of @size bytes with the value @filler.
inline FramePtr frame_to(Address destination, Address source, std::uint8_t filler = 0,
			 std::size_t size = 46)
{
	Frame frame;
	for (const Address address : {destination, source})
		for (int shift = 40; shift >= 0; shift -= 8)
			frame.push_back(static_cast<std::uint8_t>(address >> shift));
	frame.push_back(0x88);
	frame.push_back(0xb5); // EtherType for experiments (IEEE 802)
	frame.insert(frame.end(), size, filler);
	return std::make_shared<const Frame>(std::move(frame));
}

// A port that stores received frames.
struct Node {
	explicit Node(std::string name)
	    : port(std::move(name), [this](const FramePtr &frame) { arrived.push_back(frame); })
	{
	}
	// Returns the last byte of each frame.
	std::string fillers() const
	{
		std::string all;
		for (const FramePtr &frame : arrived)
			all += static_cast<char>(frame->back());
		return all;
	}

	std::vector<FramePtr> arrived;
	Port port;
};

} // namespace weft::ethernet
