// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/shared_receive_queue.hpp"

#include <utility>

#include "cards/mellanox_icm/faults.hpp"

namespace weft::mlx5
{

using hw::mlx5::SrqNext;

SharedReceiveQueue::SharedReceiveQueue(const Memory &memory, EventQueues &events, Faults &faults,
				       std::uint32_t number, const Settings &settings,
				       PageList pages)
    : LinkedReceives{{settings.log_size, settings.log_stride, settings.limit},
		     number,
		     settings.pd,
		     settings.xrc_domain,
		     settings.cqn},
      memory_(memory), events_(events), faults_(faults), settings_(settings),
      pages_(std::move(pages))
{
}

std::optional<std::uint32_t> SharedReceiveQueue::posted() const
{
	const GuestMemory *const guest = memory_.memory();
	const auto record = guest ? guest->load<std::uint32_t>(settings_.record) : std::nullopt;
	if (!record)
		return std::nullopt;
	return ib::be32::from_raw(*record).value();
}

std::optional<std::uint32_t> SharedReceiveQueue::read_link(std::uint16_t index)
{
	SrqNext link;
	if (faults_.strikes(Fault::srq_list) ||
	    !pages_.read(memory_.memory(), wqe_offset(index),
			 std::as_writable_bytes(std::span(&link, 1))))
		return std::nullopt;
	return link.next_index;
}

} // namespace weft::mlx5
