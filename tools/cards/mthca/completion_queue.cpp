// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/completion_queue.hpp"

#include <bit>

namespace weft::mthca
{

using hw::mthca::CqContext;
using hw::mthca::Cqe;

namespace
{

mellanox_icm::CompletionQueue::Settings settings(const CqContext &context, RecordPlace record)
{
	return {.buffer = QueueBuffer::keyed(CqContext::lkey.get(context.bytes),
					     CqContext::pd.get(context.bytes),
					     CqContext::start.get(context.bytes)),
		.log_size = static_cast<std::uint8_t>(CqContext::log_size.get(context.bytes)),
		.owner = OwnerRule::plain,
		.index_mask = 0xffffffff,
		.uar_page = CqContext::uar_page.get(context.bytes),
		.eqn = CqContext::eqn.get(context.bytes),
		.overrun_ignore = CqContext::overrun_ignore.get(context.bytes) != 0,
		.state = CqContext::state.get(context.bytes),
		.record = record};
}

// Applies the CQE faults that are due.
Cqe distorted(Faults &faults, Cqe entry, bool &wrong_owner)
{
	constexpr std::uint8_t no_such_completion = 0x1d;
	if (faults.strikes(Fault::cqe_number))
		entry.qpn = entry.qpn.value() ^ (1 + faults.below(0xffffff));
	// An address between two WQEs or outside of the ring.
	if (faults.strikes(Fault::cqe_index))
		entry.wqe_address = entry.wqe_address.value() ^ (1 + faults.below(0x3fffff)) << 6;
	if (faults.strikes(Fault::cqe_opcode))
		entry.opcode = no_such_completion;
	wrong_owner = faults.strikes(Fault::cqe_owner);
	return entry;
}

} // namespace

CompletionQueue::CompletionQueue(const Services &services, std::uint32_t cqn,
				 const CqContext &context, RecordPlace record, Faults &faults)
    : mellanox_icm::CompletionQueue(services, cqn, settings(context, record)), given_(context),
      faults_(faults)
{
}

bool CompletionQueue::post(const Cqe &entry, bool solicited)
{
	solicited = solicited || entry.is_error();
	if (!faults_.any())
		return put(std::bit_cast<QueueEntry>(entry), solicited);
	bool wrong_owner = false;
	const Cqe written = distorted(faults_, entry, wrong_owner);
	return put(std::bit_cast<QueueEntry>(written), solicited, wrong_owner);
}

bool CompletionQueue::resize(std::uint32_t lkey, std::uint64_t start, unsigned log_size)
{
	if (failed())
		return false;
	read_consumer_record();
	const std::uint32_t held = producer_ - consumer_;
	if (held > std::uint32_t{1} << log_size)
		return false;
	buffer_ = QueueBuffer::keyed(lkey, CqContext::pd.get(given_.bytes), start);
	log_size_ = static_cast<std::uint8_t>(log_size);
	return true;
}

CqContext CompletionQueue::context() const
{
	CqContext context = given_;
	CqContext::status.set(context.bytes, status_);
	CqContext::state.set(context.bytes, state());
	CqContext::start.set(context.bytes, buffer_.start);
	CqContext::log_size.set(context.bytes, log_size_);
	CqContext::lkey.set(context.bytes, buffer_.lkey);
	CqContext::last_notified_index.set(context.bytes, notifier_.notified());
	CqContext::solicited_producer_index.set(context.bytes, notifier_.solicited_producer());
	CqContext::consumer_index.set(context.bytes, consumer_);
	CqContext::producer_index.set(context.bytes, producer_);
	CqContext::cqn.set(context.bytes, number());
	return context;
}

} // namespace weft::mthca
