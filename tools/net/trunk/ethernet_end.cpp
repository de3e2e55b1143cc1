// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/trunk/ethernet_end.hpp"

#include <utility>

namespace weft::trunk
{

static_assert(ethernet::kMostFrame <= kMostBody);

EthernetEnd::EthernetEnd(Loop &loop, std::shared_ptr<ethernet::Channel> channel,
			 std::function<void()> wake)
    : loop_(loop), channel_(std::move(channel)), wake_(std::move(wake))
{
}

void EthernetEnd::connected()
{
	end_.emplace(channel_, ethernet::Channel::kCard, loop_,
		     ethernet::Channel::End::Handlers{.room = wake_, .frames = wake_});
}

void EthernetEnd::disconnected()
{
	end_.reset();
}

const char *EthernetEnd::take(const Frame &frame)
{
	switch (frame.type) {
	case FrameType::ethernet:
		break;
	case FrameType::alive:
		return frame.body.empty() ? nullptr : "a malformed keepalive";
	default:
		return "an unexpected frame";
	}
	const auto bytes = read_ethernet(frame.body);
	if (!bytes)
		return "an Ethernet frame that is too short or too long";
	// The frame is lost if the segment's end of the channel was closed.
	if (end_)
		end_->send(std::make_shared<const ethernet::Frame>(bytes->begin(), bytes->end()));
	return nullptr;
}

bool EthernetEnd::full()
{
	return end_ && !end_->has_room();
}

std::size_t EthernetEnd::serve(std::deque<Buffer> &out, std::size_t room)
{
	std::size_t bytes = 0;
	while (end_ && bytes < room) {
		const auto frame = end_->take();
		if (!frame)
			break;
		out.push_back(make_frame(FrameType::ethernet, std::as_bytes(std::span(*frame))));
		bytes += out.back().size();
	}
	return bytes;
}

} // namespace weft::trunk
