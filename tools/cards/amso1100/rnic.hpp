// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the RNIC: its message queues to the driver, and its TCP/IP stack with MAC and IP
// addresses of its own. While the driver has the RNIC open, class Verbs manages the RNIC's verbs
// objects.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "cards/amso1100/message_queues.hpp"
#include "cards/amso1100/verbs.hpp"
#include "base/loop.hpp"
#include "net/ethernet/frame.hpp"
#include "net/tcp/stack.hpp"

namespace weft::amso1100
{

class Rnic
{
public:
	Rnic(Interrupts &interrupts, ethernet::Address address,
	     std::function<void(const ethernet::FramePtr &)> send)
	    : queues(interrupts), address_(address), send_(std::move(send))
	{
	}

	void attach(PciHost &host);
	void reset();
	// Executes a bounded number of requests. Returns true if there may be more.
	bool serve();
	// Handles a write to ADAPTER_HINT. serve() does the work.
	void ring(std::uint32_t hint);
	// Access memory at @offset from the register page, after the fixed queues.
	void read(std::uint64_t offset, std::span<std::byte> data);
	void write(std::uint64_t offset, std::span<const std::byte> data);
	// Receives a frame for the RNIC's address, or a broadcast frame.
	void receive(const ethernet::Frame &frame);

	MessageQueues queues;

private:
	struct Open {
		std::uint64_t user_context;
		tcp::Stack stack;
		std::map<tcp::Ip, tcp::Ip> addresses; // addresses and their masks
		Verbs verbs;

		Open(PciHost &host, MessageQueues &queues, std::uint64_t context, bool privileged,
		     tcp::Mac mac, std::function<void(tcp::Bytes)> send);
	};

	void answer(const Message &request);
	hw::amso1100::Status carry_out(const Message &request, Message &reply);
	hw::amso1100::Status open(const Message &request, Message &reply);
	void query(Message &reply) const;
	hw::amso1100::Status configure(const Message &request);

	const ethernet::Address address_;
	const std::function<void(const ethernet::FramePtr &)> send_;
	PciHost *host_ = nullptr;
	std::optional<Open> open_;
};

} // namespace weft::amso1100
