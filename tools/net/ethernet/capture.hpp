// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Records Ethernet frames to a capture file, without their frame check sequences.
#pragma once

#include "base/capture_file.hpp"
#include "net/ethernet/frame.hpp"

namespace weft::ethernet
{

class Capture final : public CaptureFile
{
public:
	Capture(const std::string &path, const Environment &environment,
		std::uint64_t most_bytes = kUnlimited)
	    : CaptureFile(path, environment, most_bytes)
	{
	}

	// Adds an interface for the frames of a link, and returns its number.
	unsigned add_interface(const std::string &link)
	{
		return CaptureFile::add_interface(LinkType::ethernet, link, kMostFrame);
	}
	// Records a frame with the current time.
	void record(unsigned interface, const Frame &frame)
	{
		write_packet(interface, date(), {}, std::as_bytes(std::span(frame)));
	}
};

} // namespace weft::ethernet
