// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines an attachment, the port by which a guest, a card or a trunk is connected to a link of an
// Ethernet segment. All methods are called on the link's loop.
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
	// Returns true if a guest or a card is attached, or if the trunk is connected.
	virtual bool connected() const = 0;
	virtual bool is_trunk() const { return false; }
	// Returns the socket to which a guest connects, or an empty path if it attaches in another
	// way.
	virtual std::filesystem::path socket() const { return {}; }
};

} // namespace weft::ethernet
