// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB The fixed queues between host and RNIC:
// requests in the card's memory, replies in the host's, and the hints that tell of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include <hw/ammasso/messages.hpp>

namespace weft
{
class PciHost;
}

namespace weft::ammasso
{

class InterruptPin;

// A copy: the host may change its own.
using Message = std::array<std::byte, hw::ammasso::message_size>;

class MessageQueues
{
public:
	// Offsets from the register page: what is shared of the three queues, and the requests.
	static constexpr std::uint64_t kShared = 0x1000;
	static constexpr std::uint64_t kRequests = 0x2000;
	static constexpr std::uint64_t kEnd =
		kRequests + hw::ammasso::request_entries * hw::ammasso::message_size;
	// Hints that the host has not read.
	static constexpr std::size_t kMostHints = 1024;

	explicit MessageQueues(InterruptPin &pin) : pin_(pin) {}

	void reset();
	// An access at @offset from kShared, inside of what is there up to kEnd. True: there may be
	// something to do.
	void read(std::uint64_t offset, std::span<std::byte> data) const;
	bool write(std::uint64_t offset, std::span<const std::byte> data);
	// HOST_HINT.
	std::uint32_t pop_hint();

	// The next request. Not while a reply waits for room. INIT and TERM are carried out, and
	// given to the caller as well.
	std::optional<Message> next_request(PciHost &host);
	// @bytes of a reply; it waits where the queue is full, and for nothing else.
	void reply(PciHost &host, std::span<const std::byte> bytes);

private:
	// Of the host's memory, as INIT has said.
	struct Addresses {
		std::uint64_t hint_count, request_word, reply_word, reply_pool, event_word;
	};

	std::span<std::byte> shared(hw::ammasso::Queue queue);
	std::uint16_t host_index(hw::ammasso::Queue queue);
	void initialise(PciHost &host, const Message &message);
	void terminate();
	void flush(PciHost &host);
	void hint(PciHost &host, hw::ammasso::Queue queue);
	void put_word(PciHost &host, std::uint64_t address, std::uint16_t value);

	InterruptPin &pin_;
	std::array<std::byte, kEnd - kShared> memory_{};
	// Without: not initialised, or what it named is out of reach.
	std::optional<Addresses> addresses_;
	std::uint16_t next_request_ = 0;
	std::uint16_t next_reply_ = 0;
	std::uint16_t hints_given_ = 0;
	std::optional<Message> waiting_; // a reply
	std::deque<std::uint32_t> hints_;
};

} // namespace weft::ammasso
