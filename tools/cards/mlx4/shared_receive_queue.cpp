// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/shared_receive_queue.hpp"

#include <hw/mlx4/registers.hpp>
#include <hw/mlx4/wqe.hpp>

#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mlx4
{

using hw::mlx4::SrqContext;
using hw::mlx4::SrqNext;

SharedReceiveQueue::SharedReceiveQueue(MemoryTable &memory, EventQueues &events, Faults *faults,
				       std::uint32_t which, const SrqContext &context)
    : LinkedReceives{{static_cast<std::uint8_t>(SrqContext::log_size.get(context.bytes)),
		      static_cast<std::uint8_t>(4 + SrqContext::log_stride.get(context.bytes)),
		      static_cast<std::uint16_t>(SrqContext::limit.get(context.bytes))},
		     which,
		     SrqContext::pd.get(context.bytes),
		     static_cast<std::uint16_t>(SrqContext::xrc_domain.get(context.bytes)),
		     SrqContext::cqn.get(context.bytes)},
      memory_(memory), events_(events), faults_(faults),
      doorbell_record_(SrqContext::doorbell_record.get(context.bytes))
{
	buffer_.mtt_offset = SrqContext::mtt_offset.get(context.bytes);
	buffer_.page_shift =
		static_cast<std::uint8_t>(12 + SrqContext::log_page_size.get(context.bytes));
	buffer_.page_offset = SrqContext::page_offset.get(context.bytes) * 64;
}

std::optional<std::uint32_t> SharedReceiveQueue::posted() const
{
	GuestMemory *guest = memory_.memory();
	const auto record = guest ? guest->load<std::uint32_t>(doorbell_record_) : std::nullopt;
	if (!record)
		return std::nullopt;
	return ib::be32::from_raw(*record).value();
}

std::optional<std::uint32_t> SharedReceiveQueue::read_link(std::uint16_t index)
{
	SrqNext link;
	if ((faults_ && faults_->strikes(Fault::srq_list)) ||
	    !memory_.read(buffer_, wqe_offset(index), std::as_writable_bytes(std::span(&link, 1))))
		return std::nullopt;
	return link.next_index;
}

SrqContext SharedReceiveQueue::context() const
{
	SrqContext context{};
	SrqContext::state.set(context.bytes, failed() ? 0xf : 0);
	SrqContext::log_size.set(context.bytes, log_size());
	SrqContext::srqn.set(context.bytes, number());
	SrqContext::log_stride.set(context.bytes, log_stride() - 4u);
	SrqContext::xrc_domain.set(context.bytes, xrc_domain());
	SrqContext::page_offset.set(context.bytes, buffer_.page_offset / 64);
	SrqContext::cqn.set(context.bytes, cqn());
	SrqContext::log_page_size.set(context.bytes, buffer_.page_shift - 12u);
	SrqContext::mtt_offset.set(context.bytes, buffer_.mtt_offset);
	SrqContext::pd.set(context.bytes, pd());
	SrqContext::limit.set(context.bytes, limit());
	SrqContext::wqe_count.set(context.bytes, available());
	SrqContext::wqe_counter.set(context.bytes, taken());
	SrqContext::doorbell_record.set(context.bytes, doorbell_record_);
	return context;
}

} // namespace weft::mlx4
