// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/shared_receive_queue.hpp"

#include <algorithm>

#include <hw/mthca/wqe.hpp>

namespace weft::mthca
{

using hw::mthca::SrqContext;
using hw::mthca::WqeNext;

SharedReceiveQueue::SharedReceiveQueue(MemoryTable &memory, EventQueues &events,
				       std::uint32_t which, const SrqContext &context,
				       RecordPlace record, Faults &faults)
    : hca::SharedReceiveQueue{which, SrqContext::pd.get(context.bytes)}, memory_(memory),
      events_(events), given_(context),
      buffer_(QueueBuffer::keyed(SrqContext::lkey.get(context.bytes),
				 SrqContext::pd.get(context.bytes),
				 SrqContext::start.get(context.bytes))),
      log_size_(static_cast<std::uint8_t>(SrqContext::log_size.get(context.bytes))),
      log_stride_(static_cast<std::uint8_t>(4 + SrqContext::log_stride.get(context.bytes))),
      record_(record), faults_(faults)
{
}

std::uint32_t SharedReceiveQueue::available() const
{
	const auto record = memory_.load_record(record_);
	if (failed_ || !record)
		return 0;
	// More than fit is a driver's error; the links then lead around in a circle.
	return std::min<std::uint32_t>(static_cast<std::uint16_t>(*record - taken_), size());
}

std::optional<std::uint16_t> SharedReceiveQueue::take()
{
	if (available() == 0)
		return std::nullopt;
	const std::uint16_t index = head_;
	WqeNext link;
	if (faults_.strikes(Fault::srq_list) ||
	    !memory_.read(buffer_, wqe_offset(index),
			  std::as_writable_bytes(std::span(&link, 1)))) {
		failed_ = true;
		events_.raise(EventType::srq_catastrophic, number());
		return std::nullopt;
	}
	const std::uint32_t offset =
		link.next_address() - static_cast<std::uint32_t>(buffer_.start);
	head_ = static_cast<std::uint16_t>((offset >> log_stride_) & (size() - 1));
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

SrqContext SharedReceiveQueue::context() const
{
	SrqContext context = given_;
	SrqContext::state.set(context.bytes, failed_ ? 0xf : 0);
	SrqContext::limit.set(context.bytes, limit_);
	SrqContext::wqe_count.set(context.bytes, available());
	SrqContext::wqe_counter.set(context.bytes, taken_);
	return context;
}

} // namespace weft::mthca
