// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Records InfiniBand packets to a capture file. Each packet is recorded from the LRH to the VCRC,
 * in an ERF record of type InfiniBand, which Wireshark can decode.
 */
#pragma once

#include "base/capture_file.hpp"

namespace weft::fabric
{

class Capture final : public CaptureFile
{
public:
	explicit Capture(const std::string &path, std::uint64_t most_bytes = kUnlimited,
			 const Environment &environment = Environment::host())
	    : CaptureFile(path, environment, most_bytes)
	{
	}

	/* Adds an interface for the packets of a link, and returns its number. */
	unsigned add_interface(const std::string &link);
	/* Records a whole packet, from the LRH to the VCRC, with the current time. */
	void record(unsigned interface, std::span<const std::byte> wire);
};

} // namespace weft::fabric
