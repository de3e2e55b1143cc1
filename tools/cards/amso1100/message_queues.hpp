// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the fixed message queues between the driver and the RNIC: requests in the card's
// memory, replies and events in the guest's memory, and the hints that notify the driver of them.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include <hw/amso1100/verbs.hpp>

namespace weft
{
class PciHost;
}

namespace weft::amso1100
{

class Interrupts;

// A private copy of a message, because the host may change the original.
using Message = std::array<std::byte, hw::amso1100::message_size>;

class MessageQueues
{
public:
	// Offsets from the register page: the shared structures of the three queues, and the
	// request slots.
	static constexpr std::uint64_t kShared = 0x1000;
	static constexpr std::uint64_t kRequests = 0x2000;
	static constexpr std::uint64_t kEnd =
		kRequests + hw::amso1100::request_entries * hw::amso1100::message_size;
	// Limit of unread hints. There is at most one for each completion queue.
	static constexpr std::size_t kMostHints = 4096;
	// Limits of queued messages. Beyond them no request is taken, because requests cause
	// replies and events. A reply waits for space, or until the host has read an event. An
	// event waits for space.
	static constexpr std::size_t kMostReplies = 64;
	static constexpr std::size_t kMostEvents = 1024;

	explicit MessageQueues(Interrupts &interrupts) : interrupts_(interrupts) {}

	// @host must exist until the second reset() after the call.
	void attach(PciHost &host) { host_ = &host; }
	void reset();
	// Access @offset from kShared, up to kEnd. write() returns true if an index of the host may
	// have changed, so that there may be new requests, or space for replies and events.
	void read(std::uint64_t offset, std::span<std::byte> data) const;
	bool write(std::uint64_t offset, std::span<const std::byte> data);
	// Returns the next value of HOST_HINT.
	std::uint32_t pop_hint();

	// Returns the next request, or nothing while a reply waits for space. INIT and TERM are
	// executed here, and also returned.
	std::optional<Message> next_request();
	// Sends a reply. It waits while the queue is full, and until the host has read event number
	// @after and all earlier events.
	void reply(const Message &message, std::uint64_t after = 0);
	// Sends an event, which waits while the queue is full. Returns its number, counted from 1.
	std::uint64_t event(const Message &message);
	// Notifies the host of a change in the queue with this @index.
	void hint(std::uint32_t index);
	// Returns true if so many events are pending that work which adds events should wait.
	bool crowded() const { return events_.size() >= kMostEvents; }
	// Writes a 16-bit word in the host's memory. Returns false if it is not mapped.
	bool put_word(std::uint64_t address, std::uint16_t value);

	// Counters of messages, completions and connections of this card. Written on the loop, read
	// on any thread.
	struct Counts {
		std::atomic<std::uint64_t> requests{0}, events{0};
		std::atomic<std::uint64_t> completions{0};
		std::atomic<std::uint64_t> connections{0}; // established
	} counts;
	static void count(std::atomic<std::uint64_t> &what)
	{
		what.fetch_add(1, std::memory_order_relaxed);
	}

private:
	// Addresses in the host's memory, from INIT.
	struct Addresses {
		std::uint64_t hint_count, request_word, reply_word, reply_pool, event_word,
			event_pool;
	};
	struct Reply {
		Message message;
		std::uint64_t after;
	};

	std::span<std::byte> shared(hw::amso1100::Queue queue);
	std::uint16_t host_index(hw::amso1100::Queue queue);
	void initialise(const Message &message);
	void terminate();
	void flush();
	bool flush_replies();
	void flush_events();
	bool put(std::uint64_t pool, std::uint16_t &next, unsigned entries, std::uint64_t word,
		 hw::amso1100::Queue queue, const Message &message);
	std::uint64_t events_read();
	void put_own_word(std::uint64_t address, std::uint16_t value);

	Interrupts &interrupts_;
	std::array<std::byte, kEnd - kShared> memory_{};
	// Empty before INIT, and after an access to one of the addresses has failed because it is
	// not mapped.
	std::optional<Addresses> addresses_;
	std::uint16_t next_request_ = 0;
	std::uint16_t next_reply_ = 0;
	std::uint16_t next_event_ = 0;
	std::uint16_t hints_given_ = 0;
	std::deque<Reply> replies_;  // replies that wait for space
	std::deque<Message> events_; // events that wait for space
	std::uint64_t events_written_ = 0;
	std::deque<std::uint32_t> hints_;
	// Completion queues that have an unread hint.
	std::bitset<hw::amso1100::most_queue_index + 1> hinted_;
	PciHost *host_ = nullptr;
};

} // namespace weft::amso1100
