// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What has a place on an Ethernet: a port, and somebody behind it. On the loop of its link.
#pragma once

#include <filesystem>

namespace weft::ethernet
{

class Port;

class Attachment
{
public:
	virtual ~Attachment() = default;

	virtual Port &port() = 0;
	// Whether somebody is behind it.
	virtual bool connected() const = 0;
	// Where a machine connects to; empty if it does so in another way.
	virtual std::filesystem::path socket() const { return {}; }
};

} // namespace weft::ethernet
