// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/timed_trunk.hpp"

#include <deque>
#include <limits>
#include <utility>

namespace weft::trunk
{

TimedTrunk::TimedTrunk(Loop &loop, fabric::Port &port, Send send)
    : send_(std::move(send)), wakeup_(loop, [this] { serve(); }),
      end_(port, [this] { wakeup_.signal(); })
{
	end_.connected();
	wakeup_.signal();
}

const char *TimedTrunk::arrive(std::span<const std::byte> bytes)
{
	const auto frame = read_frame(bytes);
	if (!frame)
		return "a malformed frame";
	const char *wrong = end_.take(*frame);
	if (!wrong)
		serve();
	return wrong;
}

// The windows of the trunk limit the frames, so all of them are sent.
void TimedTrunk::serve()
{
	std::deque<Buffer> frames;
	while (end_.serve(frames, std::numeric_limits<std::size_t>::max()) != 0) {
		for (const Buffer &frame : frames)
			send_(frame);
		frames.clear();
	}
}

} // namespace weft::trunk
