// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/shared_receive_queue.hpp"

#include <algorithm>
#include <utility>

namespace weft::mlx5
{

using hw::mlx5::SrqNext;

SharedReceiveQueue::SharedReceiveQueue(const Memory &memory, EventQueues &events,
				       std::uint32_t number, const Settings &settings,
				       PageList pages)
    : hca::SharedReceiveQueue{number, settings.pd, settings.xrc_domain, settings.cqn},
      memory_(memory), events_(events), settings_(settings), pages_(std::move(pages)),
      limit_(settings.limit)
{
}

std::uint32_t SharedReceiveQueue::available() const
{
	const GuestMemory *const guest = memory_.memory();
	const auto record = guest ? guest->load<std::uint32_t>(settings_.record) : std::nullopt;
	if (failed_ || !record)
		return 0;
	const auto posted = static_cast<std::uint16_t>(ib::be32::from_raw(*record));
	// More than fit is a driver's error; the links then lead around in a circle.
	return std::min<std::uint32_t>(static_cast<std::uint16_t>(posted - taken_), size());
}

std::optional<std::uint16_t> SharedReceiveQueue::take()
{
	if (available() == 0)
		return std::nullopt;
	const std::uint16_t index = head_;
	SrqNext link;
	if (!pages_.read(memory_.memory(), offset(index),
			 std::as_writable_bytes(std::span(&link, 1)))) {
		failed_ = true;
		events_.raise(EventType::srq_catastrophic, number());
		return std::nullopt;
	}
	head_ = static_cast<std::uint16_t>(link.next_index & (size() - 1));
	++taken_;
	check_limit();
	return index;
}

void SharedReceiveQueue::arm_limit(std::uint16_t limit)
{
	limit_ = limit;
	check_limit();
}

// The event comes once, and the limit must then be set again (IBA 10.2.9.2).
void SharedReceiveQueue::check_limit()
{
	if (limit_ == 0 || available() >= limit_)
		return;
	limit_ = 0;
	events_.raise(EventType::srq_limit, number());
}

} // namespace weft::mlx5
