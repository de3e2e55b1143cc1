// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements one end of a trunk in virtual time. Its frames are those of any trunk of a link, but
// they reach the other end through the server of the rounds (tools/virtual_time/rounds.hpp), after
// the delay of the trunk. Packets, credits and the states of the link therefore all have this
// delay.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/loop.hpp"
#include "net/trunk/trunk_port.hpp"

namespace weft::trunk
{

// Created, used and destroyed on the loop's thread. All packets of the port's fabric are sent on
// this thread.
class TimedTrunk
{
public:
	using Send = std::function<void(std::span<const std::byte> frame)>;

	// @port represents the remote port. @send sends a frame to the other end. @loop and @port
	// must outlive this object.
	TimedTrunk(Loop &loop, fabric::Port &port, Send send);
	TimedTrunk(const TimedTrunk &) = delete;
	TimedTrunk &operator=(const TimedTrunk &) = delete;

	// Handles a frame from the other end, with its header. Returns what is wrong, or null.
	const char *arrive(std::span<const std::byte> frame);

private:
	void serve();

	const Send send_;
	Wakeup wakeup_;
	TrunkPort end_;
};

} // namespace weft::trunk
