// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Attaches a trunk to an Ethernet segment: the port that represents the part of the segment in
// another daemon. The trunk has the card's side of the channel (channel.hpp), and its end of the
// channel is open as long as it is connected. The attachment runs on the loop of its link.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/loop.hpp"
#include "net/ethernet/attachment.hpp"
#include "net/ethernet/channel.hpp"
#include "net/ethernet/link.hpp"

namespace weft::ethernet
{

class TrunkAttachment final : public Attachment
{
public:
	// @lost is called after a connection has been lost, or has been replaced by another one.
	TrunkAttachment(Loop &loop, std::string name, std::shared_ptr<Channel> channel,
			std::function<void()> lost)
	    : port_(std::move(name),
		    [this](const FramePtr &frame) {
			    if (!end_.send(frame))
				    ++port_.counters.rcv_discards;
		    }),
	      end_(std::move(channel), Channel::kNetwork, loop,
		   Channel::End::Handlers{
			   .receive = [this](const FramePtr &frame) { port_.send(frame); },
			   .peer_changed =
				   [this, lost = std::move(lost)] {
					   // The first frames of the first connection may have
					   // arrived before this call.
					   if (std::exchange(was_connected_, connected()))
						   lost();
				   }})
	{
	}

	Port &port() override { return port_; }
	bool connected() const override { return end_.peer_is_attached(); }
	bool is_trunk() const override { return true; }

private:
	Port port_;
	bool was_connected_ = false; // at the last call of peer_changed
	Channel::End end_;
};

} // namespace weft::ethernet
