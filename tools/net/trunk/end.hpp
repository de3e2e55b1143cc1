// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines one end of a trunk: what is sent over the trunk's connection, and what happens with the
// frames that arrive. An end uses no sockets.
#pragma once

#include <cstddef>
#include <deque>

#include "net/trunk/frame.hpp"

namespace weft::trunk
{

// All functions are called on the thread of the trunk. An end notifies the trunk, from any thread,
// when serve() should be called or when it is no longer full.
class End
{
public:
	virtual ~End() = default;

	// Called when a connection to an authenticated peer exists, or no longer exists.
	virtual void connected() = 0;
	virtual void disconnected() = 0;
	// Handles a frame from the peer. Returns null if the frame is valid, or what is wrong with
	// it; the owner then disconnects.
	virtual const char *take(const Frame &frame) = 0;
	// Returns true if no more frames should be taken. They then wait in the connection, so that
	// the peer has to wait.
	virtual bool full() { return false; }
	// Does pending work, and appends frames to be sent while they have fewer than @room bytes.
	// Returns the number of bytes appended.
	virtual std::size_t serve(std::deque<Buffer> &out, std::size_t room) = 0;
};

} // namespace weft::trunk
