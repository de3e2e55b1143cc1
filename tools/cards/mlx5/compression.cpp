// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/compression.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cards/mlx5/completion_queue.hpp"

namespace weft::mlx5
{

using hw::mlx5::CqContext;
using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;
using hw::mlx5::MiniCqe;

namespace
{

bool is_requester(const Cqe &entry)
{
	return Cqe::opcode.get(entry.bytes) == static_cast<std::uint32_t>(CqeOpcode::requester);
}

bool has_checksum(std::uint32_t mini_format)
{
	return mini_format != CqContext::mini_hash;
}

// Returns the CQE without the fields that a mini CQE has. The WQE counter is cleared, too: a
// responder's mini CQE does not have it, and it must be that of the title CQE plus the position in
// the session.
Cqe common_part(Cqe entry, std::uint32_t mini_format)
{
	Cqe::byte_count.set(entry.bytes, 0);
	Cqe::wqe_counter.set(entry.bytes, 0);
	if (is_requester(entry))
		Cqe::wqe_opcode.set(entry.bytes, 0);
	else if (has_checksum(mini_format))
		Cqe::checksum.set(entry.bytes, 0);
	else
		Cqe::hash.set(entry.bytes, 0);
	return entry;
}

} // namespace

bool CompressedSession::may_hold(const Cqe &entry)
{
	switch (static_cast<CqeOpcode>(Cqe::opcode.get(entry.bytes))) {
	case CqeOpcode::requester:
	case CqeOpcode::responder_send:
		return Cqe::format.get(entry.bytes) == 0;
	default:
		return false;
	}
}

bool CompressedSession::accepts(const Cqe &entry) const
{
	if (entries_.empty())
		return true;
	const std::uint32_t next = Cqe::wqe_counter.get(entries_.back().bytes) + 1;
	if (!is_requester(entry) && Cqe::wqe_counter.get(entry.bytes) != (next & 0xffff))
		return false;
	return std::ranges::equal(common_part(entry, mini_format_).bytes,
				  common_part(first(), mini_format_).bytes);
}

Cqe CompressedSession::title() const
{
	Cqe title = first();
	Cqe::format.set(title.bytes, Cqe::compressed);
	Cqe::byte_count.set(title.bytes, size());
	return title;
}

std::array<std::uint8_t, Cqe::size> CompressedSession::minis(std::size_t first) const
{
	std::array<std::uint8_t, Cqe::size> slot{};
	const std::size_t end = std::min<std::size_t>(first + MiniCqe::per_slot, entries_.size());
	for (std::size_t i = first; i < end; ++i) {
		const std::uint8_t *const entry = entries_[i].bytes;
		std::uint8_t *const mini = slot.data() + MiniCqe::size * (i - first);
		MiniCqe::byte_count.set(mini, Cqe::byte_count.get(entry));
		if (is_requester(entries_[i])) {
			MiniCqe::wqe_counter.set(mini, Cqe::wqe_counter.get(entry));
			MiniCqe::wqe_opcode.set(mini, Cqe::wqe_opcode.get(entry));
		} else if (has_checksum(mini_format_)) {
			// The index of a stride is 0, because receive queues have no strides.
			MiniCqe::checksum.set(mini, Cqe::checksum.get(entry));
		} else {
			MiniCqe::hash.set(mini, Cqe::hash.get(entry));
		}
	}
	return slot;
}

void HeldCompletions::add(CompletionQueue &queue)
{
	if (std::ranges::find(queues_, &queue) == queues_.end())
		queues_.push_back(&queue);
	wakeup_.signal();
}

void HeldCompletions::remove(CompletionQueue &queue)
{
	std::erase(queues_, &queue);
}

void HeldCompletions::write()
{
	for (CompletionQueue *const queue : std::exchange(queues_, {}))
		queue->write_held();
}

} // namespace weft::mlx5
