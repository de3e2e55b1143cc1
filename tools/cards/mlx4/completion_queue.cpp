// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/completion_queue.hpp"

#include <algorithm>
#include <bit>

#include "cards/mlx4/limits.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mlx4
{

using hw::mlx4::CqContext;
using hw::mlx4::Cqe;

namespace
{

mellanox_icm::CompletionQueue::Settings settings(const CqContext &context)
{
	const std::uint8_t *const in = context.bytes;
	mellanox_icm::CompletionQueue::Settings settings;
	settings.buffer.mtt_offset = CqContext::mtt_offset.get(in);
	settings.buffer.page_shift =
		static_cast<std::uint8_t>(12 + CqContext::log_page_size.get(in));
	settings.buffer.page_offset = CqContext::page_offset.get(in) * 32;
	settings.log_size = static_cast<std::uint8_t>(CqContext::log_size.get(in));
	settings.uar_page = CqContext::uar_page.get(in);
	settings.eqn = CqContext::eqn.get(in);
	settings.overrun_ignore = CqContext::overrun_ignore.get(in);
	settings.state = CqContext::state.get(in);
	settings.record.address = CqContext::doorbell_record.get(in);
	settings.moderation_count = static_cast<std::uint16_t>(CqContext::moderation_count.get(in));
	settings.moderation_period =
		static_cast<std::uint16_t>(CqContext::moderation_period.get(in));
	return settings;
}

// Applies the CQE faults that are due.
Cqe distorted(Faults &faults, Cqe entry, bool &wrong_owner)
{
	constexpr std::uint8_t no_such_completion = 0x1d;
	if (faults.strikes(Fault::cqe_number))
		entry.qpn_word = entry.qpn_word.value() ^ (1 + faults.below(0xffffff));
	if (faults.strikes(Fault::cqe_index))
		entry.wqe_index = static_cast<std::uint16_t>(entry.wqe_index.value() + 1 +
							     faults.below(0xffff));
	if (faults.strikes(Fault::cqe_opcode))
		entry.owner_opcode = static_cast<std::uint8_t>(
			(entry.owner_opcode & ~Cqe::opcode_mask) | no_such_completion);
	wrong_owner = faults.strikes(Fault::cqe_owner);
	return entry;
}

} // namespace

CompletionQueue::CompletionQueue(const Services &services, std::uint32_t cqn,
				 const CqContext &context, Faults *faults)
    : mellanox_icm::CompletionQueue(services, cqn, settings(context)), faults_(faults)
{
}

bool CompletionQueue::initialise_buffer()
{
	const auto unmarked = mark(buffer_, log_size_, 0, 0);
	unmarked_ = unmarked.value_or(Unmarked{});
	return unmarked.has_value();
}

std::optional<CompletionQueue::Unmarked> CompletionQueue::mark(const QueueBuffer &buffer,
							       unsigned log_size,
							       std::uint32_t index,
							       std::uint32_t held) const
{
	const std::uint32_t size = std::uint32_t{1} << log_size;
	const std::uint32_t first =
		std::min(size - held, std::uint32_t{1} << limits::kLogMarkedEntries);
	if (!fill_hardware_owned(services_.memory, buffer, index, first, log_size) ||
	    !fill_hardware_owned(services_.memory, buffer, index + size - held, held, log_size))
		return std::nullopt;
	return Unmarked{index + first, size - held - first};
}

bool CompletionQueue::mark_next()
{
	if (unmarked_.count == 0)
		return true;
	--unmarked_.count;
	return fill_hardware_owned(services_.memory, buffer_, unmarked_.first++, 1, log_size_);
}

bool CompletionQueue::write(const Cqe &entry, bool solicited, bool wrong_owner)
{
	if (!failed() && !mark_next()) {
		fail_write();
		return false;
	}
	return put(std::bit_cast<QueueEntry>(entry), solicited, wrong_owner);
}

bool CompletionQueue::post(const Cqe &entry, bool solicited)
{
	solicited = solicited || entry.opcode() == hw::mlx4::cqe_opcode_error;
	if (!faults_ || !faults_->any())
		return write(entry, solicited);
	bool wrong_owner = false;
	const Cqe written = distorted(*faults_, entry, wrong_owner);
	return write(written, solicited, wrong_owner);
}

CompletionQueue::ResizeResult CompletionQueue::resize(const QueueBuffer &buffer, unsigned log_size)
{
	if (failed() || full())
		return ResizeResult::too_small;
	const std::uint32_t new_size = std::uint32_t{1} << log_size;
	read_consumer_record();
	const std::uint32_t held = (producer_ + 1 - consumer_) & kIndexMask;
	if (held > new_size || held > std::uint32_t{1} << limits::kLogMarkedEntries)
		return ResizeResult::too_small;

	// The driver finds the entry that reports the resize in the old buffer, copies the unpolled
	// entries to the next higher index in the new buffer, and continues there.
	const std::uint32_t next = (producer_ + 1) & kIndexMask;
	const auto unmarked = mark(buffer, log_size, next, held);
	if (!unmarked)
		return ResizeResult::no_memory;
	Cqe mark{};
	mark.owner_opcode = hw::mlx4::cqe_opcode_resize;
	if (!store(producer_, std::bit_cast<QueueEntry>(mark)))
		return ResizeResult::no_memory;
	buffer_ = buffer;
	unmarked_ = *unmarked;
	log_size_ = static_cast<std::uint8_t>(log_size);
	producer_ = next;
	notifier_.moved_up(next);
	return ResizeResult::done;
}

CqContext CompletionQueue::context() const
{
	CqContext context{};
	CqContext::status.set(context.bytes, status_);
	CqContext::overrun_ignore.set(context.bytes, overrun_ignore_);
	CqContext::state.set(context.bytes, state());
	CqContext::page_offset.set(context.bytes, buffer_.page_offset / 32);
	CqContext::log_size.set(context.bytes, log_size_);
	CqContext::uar_page.set(context.bytes, uar_page_);
	CqContext::moderation_period.set(context.bytes, notifier_.moderation_period());
	CqContext::moderation_count.set(context.bytes, notifier_.moderation_count());
	CqContext::eqn.set(context.bytes, eqn_);
	CqContext::log_page_size.set(context.bytes, buffer_.page_shift - 12u);
	CqContext::mtt_offset.set(context.bytes, buffer_.mtt_offset);
	CqContext::last_notified_index.set(context.bytes, notifier_.notified());
	CqContext::solicited_producer_index.set(context.bytes, notifier_.solicited_producer());
	CqContext::consumer_index.set(context.bytes, consumer_);
	CqContext::producer_index.set(context.bytes, producer_);
	CqContext::doorbell_record.set(context.bytes, record_.address);
	return context;
}

} // namespace weft::mlx4
