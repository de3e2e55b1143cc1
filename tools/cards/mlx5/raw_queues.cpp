// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/raw_queues.hpp"

#include <algorithm>
#include <array>

#include "base/guest_memory.hpp"
#include "cards/mlx5/send_request.hpp"

namespace weft::mlx5
{

void ReceiveQueue::set_state(RawState state)
{
	state_ = state;
	if (state == RawState::reset)
		next_ = 0;
}

Taken ReceiveQueue::take(const GuestMemory *memory, std::uint64_t bytes, ReceiveWork &work)
{
	if (state_ != RawState::ready || !memory)
		return Taken::none;
	work.index = next_;
	work.pd = settings_.pd;
	work.cqn = settings_.cqn;
	const auto record = memory->load<std::uint32_t>(settings_.record);
	if (!record)
		return Taken::broken;
	const auto posted = static_cast<std::uint16_t>(ib::be32::from_raw(*record).value());
	const auto waiting = static_cast<std::uint16_t>(posted - next_);
	const std::uint32_t size = std::uint32_t{1} << settings_.log_size;
	// A record that claims more entries than the queue has is ignored.
	if (waiting == 0 || waiting > size)
		return Taken::none;
	std::array<std::byte, limits::kReceiveWqeBytes> segments;
	const std::size_t stride = std::size_t{1} << settings_.log_stride;
	const auto entry = std::span(segments).first(std::min(stride, segments.size()));
	const std::uint64_t slot = next_ & (size - 1);
	if (!pages_.read(memory, slot << settings_.log_stride, entry))
		return Taken::broken;
	work.room = decode_receive(entry, work.pieces);
	if (work.room < bytes)
		return Taken::none;
	++next_;
	work.taken = true;
	return Taken::yes;
}

void RawQueues::reset()
{
	receive_queues.clear();
	send_queues = 0;
	send_interfaces.clear();
	receive_interfaces.clear();
	tables.clear();
	counter_sets.clear();
	for (NumberPool *pool : {&tis_numbers, &tir_numbers, &rqt_numbers, &counter_numbers})
		pool->reset();
}

std::optional<RawQueues::Choice> RawQueues::choose(std::uint32_t number,
						   const hw::mlx5::FlowHeaders &headers) const
{
	const ReceiveInterface *const tir = receive_interfaces.find(number);
	if (!tir)
		return std::nullopt;
	Choice choice{.rqn = tir->rqn, .hash = hash(tir->rule, headers)};
	if (!tir->indirect)
		return choice;
	const QueueTable *const table = tables.find(tir->rqt);
	if (!table)
		return std::nullopt;
	choice.rqn = table->queues[choice.hash.value % table->queues.size()];
	return choice;
}

void RawQueues::count_drop(const ReceiveQueue &queue)
{
	if (std::uint32_t *const drops = counter_sets.find(queue.settings().counter_set))
		++*drops;
}

} // namespace weft::mlx5
