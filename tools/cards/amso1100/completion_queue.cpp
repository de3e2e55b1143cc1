// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/amso1100/completion_queue.hpp"

#include <algorithm>

#include "cards/amso1100/bytes.hpp"
#include "base/guest_memory.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

namespace wire = hw::amso1100;

CompletionQueue::CompletionQueue(std::uint32_t own_handle, std::uint16_t place, PciHost &host,
				 MessageQueues &queues, const Config &how)
    : handle(own_handle), config(how), place_(place), host_(host), queues_(queues)
{
	shared_[wire::shared::notification] = static_cast<std::byte>(wire::Notification::none);
	// Initialise the word, which has an arbitrary value before.
	out_of_reach_ = !queues_.put_word(config.producer_word, 0);
}

void CompletionQueue::read(std::size_t offset, std::span<std::byte> data) const
{
	std::ranges::copy(std::span(shared_).subspan(offset, data.size()), data.begin());
}

// A host that arms the queue with armed_wait waits until the card clears the flag. All completions
// so far are in the host's memory, so the flag is cleared at once.
void CompletionQueue::write(std::size_t offset, std::span<const std::byte> data)
{
	std::ranges::copy(data, shared_.begin() + static_cast<std::ptrdiff_t>(offset));
	shared_[wire::shared::armed] &= ~std::byte{wire::armed_wait};
}

CompletionQueue::Added CompletionQueue::add(const Entry &entry, bool solicited)
{
	if (out_of_reach_ || !host_.bus_master())
		return Added::out_of_reach;
	const auto consumed = load_be<std::uint16_t>(shared_, wire::shared::index);
	const std::uint32_t next = (produced_ + 1) % config.depth;
	if (consumed >= config.depth || next == consumed)
		return Added::full;
	const std::uint64_t place = config.pool + std::uint64_t{produced_} * config.slot_size;
	if (!host_.dma().write(place, entry) ||
	    !queues_.put_word(config.producer_word, static_cast<std::uint16_t>(next))) {
		out_of_reach_ = true;
		return Added::out_of_reach;
	}
	produced_ = next;
	MessageQueues::count(queues_.counts.completions);
	const auto wanted = static_cast<wire::Notification>(shared_[wire::shared::notification]);
	const bool armed =
		(shared_[wire::shared::armed] & std::byte{wire::armed_yes}) != std::byte{0};
	const bool counts = wanted == wire::Notification::next ||
			    (wanted == wire::Notification::next_solicited &&
			     (solicited || entry[wire::header::result] != std::byte{0}));
	if (armed && counts) {
		shared_[wire::shared::armed] = std::byte{0};
		queues_.hint(index());
	}
	return Added::yes;
}

} // namespace weft::amso1100
