// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The fixed message queues between host and RNIC: requests in the card's memory, replies in the
// host's memory, and the hints that notify the host of them.
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

// A copy: the host may change its own.
using Message = std::array<std::byte, hw::amso1100::message_size>;

class MessageQueues
{
public:
	// Offsets from the register page: what is shared of the three queues, and the requests.
	static constexpr std::uint64_t kShared = 0x1000;
	static constexpr std::uint64_t kRequests = 0x2000;
	static constexpr std::uint64_t kEnd =
		kRequests + hw::amso1100::request_entries * hw::amso1100::message_size;
	// Hints that the host has not read; of completion queues there is one of each at the most.
	static constexpr std::size_t kMostHints = 4096;
	// While more wait, no request is taken: replies, for room or for events to be read, and
	// events for room.
	static constexpr std::size_t kMostReplies = 64;
	static constexpr std::size_t kMostEvents = 1024;

	explicit MessageQueues(Interrupts &interrupts) : interrupts_(interrupts) {}

	// @host is there until the next reset() but one.
	void attach(PciHost &host) { host_ = &host; }
	void reset();
	// An access at @offset from kShared, inside of what is there up to kEnd. True: there may be
	// something to do.
	void read(std::uint64_t offset, std::span<std::byte> data) const;
	bool write(std::uint64_t offset, std::span<const std::byte> data);
	// HOST_HINT.
	std::uint32_t pop_hint();

	// The next request. Not while a reply waits for room. INIT and TERM are carried out, and
	// given to the caller as well.
	std::optional<Message> next_request();
	// A reply; it waits while the queue is full, and until the host has read the event with
	// the number @after and all before it.
	void reply(const Message &message, std::uint64_t after = 0);
	// An event; it waits while the queue is full. Returns its number, from 1.
	std::uint64_t event(const Message &message);
	// Something is there in the queue that the host knows by @index.
	void hint(std::uint32_t index);
	// So many events wait that what can do without them does.
	bool crowded() const { return events_.size() >= kMostEvents; }
	// A word of 16 bits in the host's memory. False: there is none.
	bool put_word(std::uint64_t address, std::uint16_t value);

	// Counters of messages, completions and connections of this card. Written on the loop, read
	// by any thread.
	struct Counts {
		std::atomic<std::uint64_t> requests{0}, events{0};
		std::atomic<std::uint64_t> completions{0};
		std::atomic<std::uint64_t> connections{0}; // that came about
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
	// Without: not initialised, or what it named is out of reach.
	std::optional<Addresses> addresses_;
	std::uint16_t next_request_ = 0;
	std::uint16_t next_reply_ = 0;
	std::uint16_t next_event_ = 0;
	std::uint16_t hints_given_ = 0;
	std::deque<Reply> replies_;  // that wait
	std::deque<Message> events_; // the same
	std::uint64_t events_written_ = 0;
	std::deque<std::uint32_t> hints_;
	// Completion queues whose hint is not read.
	std::bitset<hw::amso1100::most_queue_index + 1> hinted_;
	PciHost *host_ = nullptr;
};

} // namespace weft::amso1100
