// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements one end of a trunk that carries the frames of an Ethernet segment. The other end of
// the channel is a port of the segment's switch in this daemon (net/ethernet/trunk_attachment.hpp).
//
// There are no credits: if the connection is too slow, frames wait in the channel, which has space
// for a limited number of bytes, and then they are dropped. In the other direction, the peer has to
// wait if the segment is too slow.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/loop.hpp"
#include "net/ethernet/channel.hpp"
#include "net/trunk/end.hpp"

namespace weft::trunk
{

class EthernetEnd final : public End
{
public:
	// @wake is called on the loop when serve() should be called, or when this end is no longer
	// full.
	EthernetEnd(Loop &loop, std::shared_ptr<ethernet::Channel> channel,
		    std::function<void()> wake);

	// The end of the channel is open as long as there is a connection.
	void connected() override;
	void disconnected() override;
	const char *take(const Frame &frame) override;
	bool full() override;
	std::size_t serve(std::deque<Buffer> &out, std::size_t room) override;

private:
	Loop &loop_;
	const std::shared_ptr<ethernet::Channel> channel_;
	const std::function<void()> wake_;
	std::optional<ethernet::Channel::End> end_;
};

} // namespace weft::trunk
