// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "ammasso/message_queues.hpp"

#include <algorithm>

#include <hw/ammasso/registers.hpp>

#include "ammasso/bytes.hpp"
#include "ammasso/interrupt_pin.hpp"
#include "base/guest_memory.hpp"
#include "pci/device.hpp"

namespace weft::ammasso
{

namespace wire = hw::ammasso;
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
	waiting_.reset();
	hints_.clear();
	next_request_ = next_reply_ = hints_given_ = 0;
}

void MessageQueues::read(std::uint64_t offset, std::span<std::byte> data) const
{
	std::ranges::copy(std::span(memory_).subspan(offset, data.size()), data.begin());
}

// Nothing acts but the indices.
bool MessageQueues::write(std::uint64_t offset, std::span<const std::byte> data)
{
	std::ranges::copy(data, memory_.begin() + static_cast<std::ptrdiff_t>(offset));
	return offset < 3 * wire::shared::size;
}

std::uint32_t MessageQueues::pop_hint()
{
	if (hints_.empty())
		return wire::hint_none;
	const std::uint32_t hint = hints_.front();
	hints_.pop_front();
	return hint;
}

std::optional<Message> MessageQueues::next_request(PciHost &host)
{
	flush(host);
	if (waiting_ || !host.bus_master())
		return std::nullopt;
	const std::uint16_t produced = host_index(Queue::requests);
	const auto slot = [&](std::uint16_t index) {
		return std::span(memory_).subspan(kRequests - kShared +
							  std::size_t{index} * wire::message_size,
						  wire::message_size);
	};
	if (produced >= wire::request_entries)
		return std::nullopt;
	// A host that was killed has said nothing, and begins anew.
	if (produced == 1 && next_request_ > 1 && id_of(slot(0)) == MessageId::init)
		next_request_ = 0;
	while (produced != next_request_) {
		Message message;
		std::ranges::copy(slot(next_request_), message.begin());
		const bool was_full = (produced + 1) % wire::request_entries == next_request_;
		next_request_ =
			static_cast<std::uint16_t>((next_request_ + 1) % wire::request_entries);
		if (id_of(message) == MessageId::init) {
			initialise(host, message);
		} else if (id_of(message) == MessageId::term) {
			terminate();
		} else if (!addresses_) {
			// Nobody could be answered.
			continue;
		} else {
			put_word(host, addresses_->request_word, next_request_);
			if (was_full)
				hint(host, Queue::requests);
		}
		return message;
	}
	return std::nullopt;
}

// The words hold anything before.
void MessageQueues::initialise(PciHost &host, const Message &message)
{
	const auto at = [&](std::size_t offset) { return load_be<std::uint64_t>(message, offset); };
	addresses_ = Addresses{at(wire::init::hint_count), at(wire::init::request_word),
			       at(wire::init::reply_word), at(wire::init::reply_pool),
			       at(wire::init::event_word)};
	waiting_.reset();
	hints_.clear();
	next_reply_ = hints_given_ = 0;
	for (const Queue queue : {Queue::replies, Queue::events})
		std::ranges::fill(shared(queue), std::byte{0});
	const Addresses said = *addresses_;
	for (const std::uint64_t word : {said.hint_count, said.reply_word, said.event_word})
		put_word(host, word, 0);
	put_word(host, said.request_word, next_request_);
}

void MessageQueues::put_word(PciHost &host, std::uint64_t address, std::uint16_t value)
{
	std::array<std::byte, sizeof(value)> bytes;
	store_be<std::uint16_t>(bytes, 0, value);
	// Who has named what is not there is told nothing more.
	if (addresses_ && !host.dma().write(address, bytes))
		addresses_.reset();
}

void MessageQueues::reply(PciHost &host, std::span<const std::byte> bytes)
{
	waiting_.emplace();
	std::ranges::copy(bytes, waiting_->begin());
	flush(host);
}

// Message, index, hint, count, interrupt: in this order.
void MessageQueues::flush(PciHost &host)
{
	if (!addresses_)
		waiting_.reset();
	if (!waiting_ || !host.bus_master())
		return;
	const std::uint16_t consumed = host_index(Queue::replies);
	const auto next = static_cast<std::uint16_t>((next_reply_ + 1) % wire::reply_entries);
	if (consumed >= wire::reply_entries || next == consumed)
		return;
	const std::uint64_t place =
		addresses_->reply_pool + std::uint64_t{next_reply_} * wire::message_size;
	if (!host.dma().write(place, *waiting_)) {
		addresses_.reset();
		waiting_.reset();
		return;
	}
	waiting_.reset();
	next_reply_ = next;
	put_word(host, addresses_->reply_word, next_reply_);
	hint(host, Queue::replies);
}

void MessageQueues::hint(PciHost &host, Queue queue)
{
	if (!addresses_ || hints_.size() == kMostHints)
		return;
	hints_.push_back(static_cast<std::uint32_t>(queue));
	put_word(host, addresses_->hint_count, ++hints_given_);
	pin_.raise_hints();
}

} // namespace weft::ammasso
