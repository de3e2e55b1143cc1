// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/shared_receive_queue.hpp"

#include <hw/mthca/wqe.hpp>

namespace weft::mthca
{

using hw::mthca::SrqContext;
using hw::mthca::WqeNext;

SharedReceiveQueue::SharedReceiveQueue(MemoryTable &memory, EventQueues &events,
				       std::uint32_t which, const SrqContext &context,
				       RecordPlace record, Faults &faults)
    : LinkedReceives{{static_cast<std::uint8_t>(SrqContext::log_size.get(context.bytes)),
		      static_cast<std::uint8_t>(4 + SrqContext::log_stride.get(context.bytes))},
		     which,
		     SrqContext::pd.get(context.bytes)},
      memory_(memory), events_(events), given_(context),
      buffer_(QueueBuffer::keyed(SrqContext::lkey.get(context.bytes),
				 SrqContext::pd.get(context.bytes),
				 SrqContext::start.get(context.bytes))),
      record_(record), faults_(faults)
{
}

std::optional<std::uint32_t> SharedReceiveQueue::read_link(std::uint16_t index)
{
	WqeNext link;
	if (faults_.strikes(Fault::srq_list) ||
	    !memory_.read(buffer_, wqe_offset(index), std::as_writable_bytes(std::span(&link, 1))))
		return std::nullopt;
	return (link.next_address() - static_cast<std::uint32_t>(buffer_.start)) >> log_stride();
}

SrqContext SharedReceiveQueue::context() const
{
	SrqContext context = given_;
	SrqContext::state.set(context.bytes, failed() ? 0xf : 0);
	SrqContext::limit.set(context.bytes, limit());
	SrqContext::wqe_count.set(context.bytes, available());
	SrqContext::wqe_counter.set(context.bytes, taken());
	return context;
}

} // namespace weft::mthca
