// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages the objects of an RNIC that the driver has opened (completion queues, queue pairs, memory
// regions and endpoints), and executes the driver's requests about them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <span>

#include "cards/amso1100/completion_queue.hpp"
#include "cards/amso1100/connections.hpp"
#include "cards/amso1100/endpoints.hpp"
#include "cards/amso1100/handles.hpp"
#include "cards/amso1100/memory_regions.hpp"
#include "cards/amso1100/queue_pair.hpp"
#include "cards/amso1100/queue_window.hpp"
#include "net/tcp/stack.hpp"

namespace weft::amso1100
{

class Verbs
{
public:
	// @context is the user context of RNIC_OPEN, and @privileged whether it has requested
	// privileged access.
	Verbs(PciHost &host, MessageQueues &queues, tcp::Stack &stack, std::uint64_t context,
	      bool privileged);

	struct Answer {
		hw::amso1100::Status status = hw::amso1100::Status::ok;
		std::uint64_t after = 0; // the host must read this event before the reply
		bool none = false;       // this request has no reply
	};
	// Returns true if this class handles requests of @id.
	static bool knows(hw::amso1100::MessageId id);
	// Returns the offset of the RNIC's handle in such a request.
	static std::size_t rnic_handle(hw::amso1100::MessageId id);
	Answer carry_out(const Message &request, Message &reply);

	// Handles a write to ADAPTER_HINT for one of the queues. serve() does the work for a
	// bounded number of queues, and returns true if there are more.
	void ring(std::uint32_t hint);
	bool serve();

	// Access memory at @offset from the register page: the shared structures of completion
	// queues, and the queues of queue pairs.
	void read(std::uint64_t offset, std::span<std::byte> data);
	void write(std::uint64_t offset, std::span<const std::byte> data);

private:
	Answer create_cq(const Message &request, Message &reply);
	Answer destroy_cq(const Message &request);
	Answer create_qp(const Message &request, Message &reply);
	Answer modify_qp(const Message &request, Message &reply);
	Answer destroy_qp(const Message &request);
	Answer connect(const Message &request);
	CompletionQueue *shared_at(std::uint64_t offset, std::size_t size) const;

	PciHost &host_;
	MessageQueues &queues_;
	tcp::Stack &stack_;
	const std::uint64_t context_;
	const bool privileged_;
	// Declared before its users, so that it is destroyed after them.
	MemoryRegions regions_{host_};
	QueueWindow window_;
	Connections connections_;
	Handles<CompletionQueue, CompletionQueue::kMost> cqs_;
	Handles<QueuePair, QueuePair::kMost> qps_;
	Endpoints endpoints_;
	// Queue pairs with a pending hint, each listed once.
	std::deque<std::uint16_t> rung_;
	std::array<bool, QueuePair::kMost> is_rung_{};
};

} // namespace weft::amso1100
