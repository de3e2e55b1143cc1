// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/message_queues.hpp"

#include <algorithm>

#include <hw/amso1100/registers.hpp>

#include "cards/amso1100/bytes.hpp"
#include "cards/amso1100/interrupts.hpp"
#include "base/guest_memory.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;
using wire::MessageId;
using wire::Queue;

namespace
{

MessageId id_of(std::span<const std::byte> message)
{
	return static_cast<MessageId>(message[wire::header::id]);
}

} // namespace

std::span<std::byte> MessageQueues::shared(Queue queue)
{
	return std::span(memory_).subspan(static_cast<std::size_t>(queue) * wire::shared::size,
					  wire::shared::size);
}

std::uint16_t MessageQueues::host_index(Queue queue)
{
	return load_be<std::uint16_t>(shared(queue), wire::shared::index);
}

void MessageQueues::reset()
{
	memory_.fill({});
	terminate();
}

void MessageQueues::terminate()
{
	std::ranges::fill(std::span(memory_).first(3 * wire::shared::size), std::byte{0});
	addresses_.reset();
	replies_.clear();
	events_.clear();
	hints_.clear();
	hinted_.reset();
	next_request_ = next_reply_ = next_event_ = hints_given_ = 0;
	events_written_ = 0;
}

void MessageQueues::read(std::uint64_t offset, std::span<std::byte> data) const
{
	std::ranges::copy(std::span(memory_).subspan(offset, data.size()), data.begin());
}

// Handles a write. Only writes to the indices have an effect.
bool MessageQueues::write(std::uint64_t offset, std::span<const std::byte> data)
{
	std::ranges::copy(data, memory_.begin() + static_cast<std::ptrdiff_t>(offset));
	// A host that was killed sends no TERM, and the next host starts at index 0. The first
	// write of the next host does not change the index if the previous host has stopped at the
	// same index.
	constexpr std::size_t request_index =
		static_cast<std::size_t>(Queue::requests) * wire::shared::size +
		wire::shared::index;
	const bool says = offset < request_index + sizeof(std::uint16_t) &&
			  offset + data.size() > request_index;
	if (says && host_index(Queue::requests) == 1 &&
	    id_of(std::span(memory_).subspan(kRequests - kShared)) == MessageId::init)
		next_request_ = 0;
	return offset < 3 * wire::shared::size;
}

std::uint32_t MessageQueues::pop_hint()
{
	if (hints_.empty())
		return wire::hint_none;
	const std::uint32_t hint = hints_.front();
	hints_.pop_front();
	hinted_.reset(hint);
	return hint;
}

std::optional<Message> MessageQueues::next_request()
{
	const std::uint16_t produced = host_index(Queue::requests);
	const auto slot = [&](std::uint16_t index) {
		return std::span(memory_).subspan(kRequests - kShared +
							  std::size_t{index} * wire::message_size,
						  wire::message_size);
	};
	const bool is_one = produced < wire::request_entries && produced != next_request_;
	const MessageId first = is_one ? id_of(slot(next_request_)) : MessageId{};
	// TERM and INIT discard pending replies to earlier requests, and do not wait for them.
	if (first != MessageId::term && first != MessageId::init) {
		flush();
		const bool stuck = !replies_.empty() && !replies_.front().after;
		if (stuck || replies_.size() >= kMostReplies || crowded())
			return std::nullopt;
	}
	if (!is_one || !host_->bus_master())
		return std::nullopt;
	while (produced != next_request_) {
		Message message;
		std::ranges::copy(slot(next_request_), message.begin());
		const bool was_full = (produced + 1) % wire::request_entries == next_request_;
		next_request_ =
			static_cast<std::uint16_t>((next_request_ + 1) % wire::request_entries);
		if (id_of(message) == MessageId::init) {
			initialise(message);
		} else if (id_of(message) == MessageId::term) {
			terminate();
		} else if (!addresses_) {
			// Before an INIT there is no queue for a reply.
			continue;
		} else {
			put_own_word(addresses_->request_word, next_request_);
			if (was_full)
				hint(static_cast<std::uint32_t>(Queue::requests));
		}
		count(counts.requests);
		return message;
	}
	return std::nullopt;
}

// Initialises the words in host memory, which have arbitrary values before.
void MessageQueues::initialise(const Message &message)
{
	const auto at = [&](std::size_t offset) { return load_be<std::uint64_t>(message, offset); };
	const Addresses said{at(wire::init::hint_count), at(wire::init::request_word),
			     at(wire::init::reply_word), at(wire::init::reply_pool),
			     at(wire::init::event_word), at(wire::init::event_pool)};
	const std::uint16_t taken = next_request_;
	const std::uint16_t produced = host_index(Queue::requests);
	terminate();
	next_request_ = taken;
	store_be<std::uint16_t>(shared(Queue::requests), wire::shared::index, produced);
	addresses_ = said;
	for (const std::uint64_t word : {said.hint_count, said.reply_word, said.event_word})
		put_own_word(word, 0);
	put_own_word(said.request_word, next_request_);
}

bool MessageQueues::put_word(std::uint64_t address, std::uint16_t value)
{
	std::array<std::byte, sizeof(value)> bytes;
	store_be<std::uint16_t>(bytes, 0, value);
	return host_->bus_master() && host_->dma().write(address, bytes);
}

// Stops all further writes if an address from INIT is not mapped.
void MessageQueues::put_own_word(std::uint64_t address, std::uint16_t value)
{
	if (addresses_ && !put_word(address, value))
		addresses_.reset();
}

void MessageQueues::reply(const Message &message, std::uint64_t after)
{
	replies_.push_back({message, after});
	flush();
}

std::uint64_t MessageQueues::event(const Message &message)
{
	events_.push_back(message);
	count(counts.events);
	const std::uint64_t number = events_written_ + events_.size();
	flush();
	return number;
}

// Writes queued messages. Replies are written first, so that the host reads the answer to an accept
// before any event of the connection.
void MessageQueues::flush()
{
	if (!addresses_) {
		replies_.clear();
		events_.clear();
	}
	if (!host_->bus_master() || !flush_replies())
		return;
	flush_events();
}

// Returns the number of events that the host has read.
std::uint64_t MessageQueues::events_read()
{
	const unsigned consumed = host_index(Queue::events) % wire::event_entries;
	const unsigned unread =
		(next_event_ + wire::event_entries - consumed) % wire::event_entries;
	return events_written_ - std::min<std::uint64_t>(events_written_, unread);
}

// Writes queued replies. Returns false if a reply could not be written. It stays at the front of
// the queue, unless the queue's memory is not mapped.
bool MessageQueues::flush_replies()
{
	const std::uint64_t read = events_read();
	for (auto next = replies_.begin(); next != replies_.end();) {
		if (next->after > read) {
			++next;
			continue;
		}
		const Reply ready = *next;
		next = replies_.erase(next);
		if (!put(addresses_->reply_pool, next_reply_, wire::reply_entries,
			 addresses_->reply_word, Queue::replies, ready.message)) {
			if (addresses_)
				replies_.push_front({ready.message, 0});
			return false;
		}
	}
	return true;
}

void MessageQueues::flush_events()
{
	while (!events_.empty() && put(addresses_->event_pool, next_event_, wire::event_entries,
				       addresses_->event_word, Queue::events, events_.front())) {
		events_.pop_front();
		++events_written_;
	}
}

// Writes the message and the index, adds a hint, writes the count of hints, and raises the
// interrupt, in this order. Returns false if the queue is full or host memory is not mapped.
bool MessageQueues::put(std::uint64_t pool, std::uint16_t &next, unsigned entries,
			std::uint64_t word, Queue queue, const Message &message)
{
	const std::uint16_t consumed = host_index(queue);
	const auto following = static_cast<std::uint16_t>((next + 1) % entries);
	if (!addresses_ || consumed >= entries || following == consumed)
		return false;
	if (!host_->dma().write(pool + std::uint64_t{next} * wire::message_size, message)) {
		addresses_.reset();
		return false;
	}
	next = following;
	put_own_word(word, following);
	hint(static_cast<std::uint32_t>(queue));
	return addresses_.has_value();
}

void MessageQueues::hint(std::uint32_t index)
{
	const bool of_completions = index >= wire::least_queue_index;
	if (!addresses_ || hints_.size() == kMostHints || (of_completions && hinted_.test(index)))
		return;
	hinted_.set(index, of_completions);
	hints_.push_back(index);
	put_own_word(addresses_->hint_count, ++hints_given_);
	interrupts_.raise_hints();
}

} // namespace weft::amso1100
