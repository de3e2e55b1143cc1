// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Records InfiniBand packets to a capture file: whole packets, LRH to VCRC, as ERF records of type
 * InfiniBand.
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

	/* Returns the number of an interface that packets are recorded for. */
	unsigned add_interface(const std::string &link);
	/* Records a whole packet, LRH to VCRC, with the present time. */
	void record(unsigned interface, std::span<const std::byte> wire);
};

} // namespace weft::fabric
