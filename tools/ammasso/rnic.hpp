// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB The RNIC: what the host asks of it by
// messages, and its own station on the cable. Opened, asked, told addresses and closed; queue pairs
// are not made yet, and what asks for one is answered so.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "ammasso/message_queues.hpp"
#include "base/loop.hpp"
#include "ethernet/frame.hpp"
#include "tcp/stack.hpp"

namespace weft::ammasso
{

class Rnic
{
public:
	Rnic(InterruptPin &pin, ethernet::Address address,
	     std::function<void(const ethernet::FramePtr &)> send)
	    : queues(pin), address_(address), send_(std::move(send))
	{
	}

	void reset();
	// Carries out requests, a bounded number at a time. True: there may be more.
	bool serve(PciHost &host);
	// A frame for this station, or for all.
	void receive(const ethernet::Frame &frame);

	MessageQueues queues;

private:
	struct Open {
		std::uint64_t user_context;
		tcp::Stack stack;
		std::map<tcp::Ip, tcp::Ip> addresses; // and their masks

		Open(Loop &loop, std::uint64_t context, tcp::Mac mac,
		     std::function<void(tcp::Bytes)> send)
		    : user_context(context), stack(loop, {.mac = mac}, std::move(send))
		{
		}
	};

	hw::ammasso::Status carry_out(PciHost &host, const Message &request, Message &reply);
	hw::ammasso::Status open(PciHost &host, const Message &request, Message &reply);
	void query(Message &reply) const;
	hw::ammasso::Status configure(const Message &request);

	const ethernet::Address address_;
	const std::function<void(const ethernet::FramePtr &)> send_;
	std::optional<Open> open_;
};

} // namespace weft::ammasso
