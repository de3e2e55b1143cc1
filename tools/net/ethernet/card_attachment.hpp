// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Attaches a card with an Ethernet interface to an Ethernet segment. The attachment consists of a
// port on a link, and of the segment's end of the channel to the card (channel.hpp). The attachment
// runs on the loop of its link.
#pragma once

#include <memory>
#include <string>

#include "base/loop.hpp"
#include "net/ethernet/attachment.hpp"
#include "net/ethernet/channel.hpp"
#include "net/ethernet/link.hpp"

namespace weft::ethernet
{

class CardAttachment final : public Attachment
{
public:
	CardAttachment(Loop &loop, std::string name, std::shared_ptr<Channel> channel)
	    : port_(std::move(name),
		    [this](const FramePtr &frame) {
			    if (!end_.send(frame))
				    ++port_.counters.rcv_discards;
		    }),
	      end_(std::move(channel), Channel::kNetwork, loop,
		   [this](const FramePtr &frame) { port_.send(frame); })
	{
	}

	Port &port() override { return port_; }
	bool connected() const override { return end_.peer_is_attached(); }

private:
	Port port_;
	Channel::End end_;
};

} // namespace weft::ethernet
