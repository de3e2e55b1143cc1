// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "bus/vhost-user/ring.hpp"

#include <algorithm>
#include <bit>

#include "base/guest_memory.hpp"

namespace weft::vhost_user
{

bool Ring::set_entries(std::uint32_t entries)
{
	if (enabled_ || !std::has_single_bit(entries) || entries > kMaxRing)
		return false;
	entries_ = entries;
	addresses_.reset();
	return true;
}

bool Ring::set_addresses(const Addresses &addresses)
{
	if (enabled_ || !entries_ || addresses.descriptors % 16 || addresses.available % 2 ||
	    addresses.used % 4)
		return false;
	if (!memory_.covers(addresses.descriptors, sizeof(Descriptor) * entries_, Access::read) ||
	    !memory_.covers(addresses.available, kRingEntries + 2ull * entries_, Access::read) ||
	    !memory_.covers(addresses.used, kRingEntries + sizeof(UsedElement) * entries_,
			    Access::write))
		return false;
	addresses_ = addresses;
	return true;
}

bool Ring::set_next(std::uint16_t next)
{
	if (enabled_)
		return false;
	next_ = next;
	return true;
}

bool Ring::enable(bool on)
{
	if (on && (!addresses_ || trouble_))
		return false;
	enabled_ = on;
	return true;
}

Ring::Taken Ring::broken(const char *why)
{
	trouble_ = why;
	enabled_ = false;
	return Taken::broken;
}

Ring::Taken Ring::take(Chain &chain, std::uint64_t most)
{
	if (!enabled_)
		return Taken::nothing;
	const auto available = memory_.load<std::uint16_t>(addresses_->available + kRingIndex);
	if (!available)
		return broken("its available ring is not in its memory");
	const auto waiting = static_cast<std::uint16_t>(*available - next_);
	if (!waiting)
		return Taken::nothing;
	if (waiting > entries_)
		return broken("more is available than its ring has entries");
	const auto head = memory_.load<std::uint16_t>(addresses_->available + kRingEntries +
						      2ull * (next_ % entries_));
	if (!head)
		return broken("its available ring is not in its memory");
	chain.head = *head;
	chain.readable.clear();
	chain.writable.clear();
	++next_;
	return walk(chain, most);
}

// A chain has at most as many descriptors as the table, so that a loop ends.
Ring::Taken Ring::walk(Chain &chain, std::uint64_t most)
{
	std::uint64_t total = 0;
	std::uint16_t at = chain.head;
	for (std::uint32_t seen = 0; seen < entries_; ++seen) {
		if (at >= entries_)
			return broken("a descriptor that its ring does not have");
		const auto descriptor = memory_.read_as<Descriptor>(addresses_->descriptors +
								    sizeof(Descriptor) * at);
		if (!descriptor)
			return broken("its descriptors are not in its memory");
		if (descriptor->flags & kDescriptorIndirect)
			return broken("an indirect descriptor, which was not agreed on");
		total += descriptor->length;
		if (total > most)
			return broken("a longer chain of descriptors than a command has");
		const bool writable = descriptor->flags & kDescriptorWritable;
		if (!writable && !chain.writable.empty())
			return broken("a descriptor for reading behind one for writing");
		(writable ? chain.writable : chain.readable).push_back(*descriptor);
		if (!(descriptor->flags & kDescriptorNext))
			return Taken::chain;
		at = descriptor->next;
	}
	return broken("a chain of descriptors is cyclic or too long");
}

bool Ring::return_chain(const Chain &chain, std::uint32_t written)
{
	const UsedElement element{chain.head, written};
	const std::uint64_t place = (next_ - 1u) % entries_;
	if (memory_.write_as(addresses_->used + kRingEntries + sizeof(element) * place, element) &&
	    memory_.store(addresses_->used + kRingIndex, next_))
		return true;
	broken("its used ring is not in its memory");
	return false;
}

bool Ring::wants_call() const
{
	// Publish the index before reading the flags. Otherwise both sides could assume that the
	// other one checks again.
	std::atomic_thread_fence(std::memory_order_seq_cst);
	const auto flags = memory_.load<std::uint16_t>(addresses_->available + kRingFlags);
	return flags && !(*flags & kNoInterrupt);
}

std::optional<std::size_t> gather(const GuestMemory &memory, const std::vector<Descriptor> &parts,
				  std::span<std::byte> data)
{
	std::size_t done = 0;
	for (const Descriptor &part : parts) {
		const auto size = std::min<std::size_t>(part.length, data.size() - done);
		if (!memory.read(part.address, data.subspan(done, size)))
			return std::nullopt;
		done += size;
	}
	return done;
}

bool scatter(GuestMemory &memory, const std::vector<Descriptor> &parts,
	     std::span<const std::byte> data)
{
	for (const Descriptor &part : parts) {
		const auto size = std::min<std::size_t>(part.length, data.size());
		if (!memory.write(part.address, data.first(size)))
			return false;
		data = data.subspan(size);
	}
	return data.empty();
}

} // namespace weft::vhost_user
