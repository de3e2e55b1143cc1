// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/completion_queue.hpp"

#include <bit>

#include <hw/connectx/eqe.hpp>
#include <hw/connectx/registers.hpp>

#include "base/loop.hpp"
#include "connectx/event_queue.hpp"
#include "connectx/faults.hpp"
#include "mellanox/queue_memory.hpp"

namespace weft::connectx
{

using hw::connectx::CqContext;
using hw::connectx::Cqe;
namespace cq_state = hw::connectx::cq_state;
namespace cq_status = hw::connectx::cq_status;
namespace cq_error_syndrome = hw::connectx::cq_error_syndrome;
namespace uar = hw::connectx::uar;

CompletionQueue::CompletionQueue(const Services &services, std::uint32_t cqn,
				 const CqContext &context)
    : services_(services), cqn_(cqn), uar_page_(CqContext::uar_page.get(context.bytes)),
      eqn_(CqContext::eqn.get(context.bytes)),
      log_size_(static_cast<std::uint8_t>(CqContext::log_size.get(context.bytes))),
      overrun_ignore_(CqContext::overrun_ignore.get(context.bytes)),
      doorbell_record_(CqContext::doorbell_record.get(context.bytes))
{
	buffer_.mtt_offset = CqContext::mtt_offset.get(context.bytes);
	buffer_.page_shift =
		static_cast<std::uint8_t>(12 + CqContext::log_page_size.get(context.bytes));
	buffer_.page_offset = CqContext::page_offset.get(context.bytes) * 32;
	moderation_count_ =
		static_cast<std::uint16_t>(CqContext::moderation_count.get(context.bytes));
	moderation_period_ =
		static_cast<std::uint16_t>(CqContext::moderation_period.get(context.bytes));
	switch (CqContext::state.get(context.bytes)) {
	case cq_state::armed:
		armed_ = Armed::next;
		break;
	case cq_state::armed_solicited:
		armed_ = Armed::solicited;
		break;
	case cq_state::fired:
		fired_ = true;
		break;
	default:
		break;
	}
}

CompletionQueue::~CompletionQueue() = default;

bool CompletionQueue::initialise_buffer()
{
	return fill_hardware_owned(services_.memory, buffer_, 0, size(), log_size_);
}

// Whether no slot is free. The driver's doorbell record is looked at only when the index that was
// seen last says so. An index ahead of the producer is a driver's error and counts as full.
bool CompletionQueue::full()
{
	if (((producer_ - consumer_) & kIndexMask) < size())
		return false;
	GuestMemory *guest = services_.memory.memory();
	const auto record = guest ? guest->load<std::uint32_t>(doorbell_record_) : std::nullopt;
	if (record)
		consumer_ = ib::be32::from_raw(*record) & kIndexMask;
	return ((producer_ - consumer_) & kIndexMask) >= size();
}

bool CompletionQueue::store(std::uint32_t index, const Cqe &entry, bool wrong_owner)
{
	auto bytes = std::bit_cast<std::array<std::uint8_t, kEntrySize>>(entry);
	std::uint8_t &last = bytes.back();
	last = static_cast<std::uint8_t>(
		(last & ~Cqe::owner_bit) |
		((index >> log_size_ & 1) != wrong_owner ? Cqe::owner_bit : 0));
	return store_entry(services_.memory, buffer_, index & (size() - 1), bytes);
}

bool CompletionQueue::post(const Cqe &entry, bool solicited)
{
	if (failed())
		return false;
	if (!overrun_ignore_ && full()) {
		fail(cq_status::overflow, cq_error_syndrome::overrun);
		return false;
	}
	bool wrong_owner = false;
	const Cqe &written = services_.faults && services_.faults->any()
				     ? services_.faults->distorted(entry, wrong_owner)
				     : entry;
	if (!store(producer_, written, wrong_owner)) {
		fail(cq_status::write_failure, cq_error_syndrome::access_violation);
		return false;
	}
	producer_ = (producer_ + 1) & kIndexMask;
	solicited = solicited || entry.opcode() == hw::connectx::cqe_opcode_error;
	if (solicited)
		solicited_producer_ = producer_;
	if (armed_ == Armed::next || (armed_ == Armed::solicited && solicited))
		notify();
	return true;
}

// An entry is told of once: who arms before he polls is not told again of what woke him. Programs
// rely on it (seen: ib_read_lat -e takes each event for a completion, and overran its queue).
void CompletionQueue::arm(std::uint32_t command, std::uint32_t consumer_index)
{
	consumer_index &= kIndexMask;
	if (command == uar::cq_arm_next) {
		armed_ = Armed::next;
		if (producer_ != consumer_index && producer_ != notified_)
			fire();
	} else if (command == uar::cq_arm_solicited) {
		const auto is_beyond = [this](std::uint32_t index) {
			const std::uint32_t ahead = (solicited_producer_ - index) & kIndexMask;
			return ahead != 0 && ahead <= (kIndexMask + 1) / 2;
		};
		// A solicited request does not narrow one for any completion (IBA 11.4.2.2).
		if (armed_ == Armed::no)
			armed_ = Armed::solicited;
		if (is_beyond(consumer_index) && is_beyond(notified_))
			fire();
	}
}

// An armed queue has got what it waits for: wake the driver, now or as moderation allows.
void CompletionQueue::notify()
{
	++unnotified_;
	if (moderation_period_ == 0 || (moderation_count_ && unnotified_ >= moderation_count_)) {
		fire();
		return;
	}
	if (!moderation_timer_)
		moderation_timer_ = std::make_unique<Timer>(services_.loop, [this] {
			if (armed_ != Armed::no)
				fire();
		});
	if (!moderation_timer_->armed())
		moderation_timer_->arm(std::chrono::microseconds(moderation_period_));
}

void CompletionQueue::fire()
{
	armed_ = Armed::no;
	fired_ = true;
	notified_ = producer_;
	unnotified_ = 0;
	if (moderation_timer_)
		moderation_timer_->cancel();
	services_.events.completion(eqn_, cqn_);
}

void CompletionQueue::fail(std::uint32_t status, std::uint8_t syndrome)
{
	status_ = status;
	services_.events.cq_error(cqn_, syndrome);
}

void CompletionQueue::set_moderation(std::uint16_t count, std::uint16_t period_us)
{
	moderation_count_ = count;
	moderation_period_ = period_us;
	// What waits under the old rule is told at once.
	if (unnotified_ && armed_ != Armed::no)
		fire();
}

CompletionQueue::ResizeResult CompletionQueue::resize(const QueueBuffer &buffer, unsigned log_size)
{
	if (failed() || full())
		return ResizeResult::too_small;
	const std::uint32_t new_size = std::uint32_t{1} << log_size;
	GuestMemory *guest = services_.memory.memory();
	const auto record = guest ? guest->load<std::uint32_t>(doorbell_record_) : std::nullopt;
	if (record)
		consumer_ = ib::be32::from_raw(*record) & kIndexMask;
	if (((producer_ + 1 - consumer_) & kIndexMask) > new_size)
		return ResizeResult::too_small;

	// The driver finds the entry that says so in the old buffer, moves what it has not polled
	// up by one, and goes on in the new buffer.
	const std::uint32_t next = (producer_ + 1) & kIndexMask;
	if (!fill_hardware_owned(services_.memory, buffer, next, new_size, log_size))
		return ResizeResult::no_memory;
	Cqe mark{};
	mark.owner_opcode = hw::connectx::cqe_opcode_resize;
	if (!store(producer_, mark))
		return ResizeResult::no_memory;
	buffer_ = buffer;
	log_size_ = static_cast<std::uint8_t>(log_size);
	// A position that the driver moves up stays solicited.
	if (solicited_producer_ == producer_)
		solicited_producer_ = next;
	producer_ = next;
	return ResizeResult::done;
}

CqContext CompletionQueue::context() const
{
	CqContext context{};
	std::uint32_t state = fired_ ? cq_state::fired : cq_state::idle;
	if (armed_ == Armed::next)
		state = cq_state::armed;
	else if (armed_ == Armed::solicited)
		state = cq_state::armed_solicited;
	CqContext::status.set(context.bytes, status_);
	CqContext::overrun_ignore.set(context.bytes, overrun_ignore_);
	CqContext::state.set(context.bytes, state);
	CqContext::page_offset.set(context.bytes, buffer_.page_offset / 32);
	CqContext::log_size.set(context.bytes, log_size_);
	CqContext::uar_page.set(context.bytes, uar_page_);
	CqContext::moderation_period.set(context.bytes, moderation_period_);
	CqContext::moderation_count.set(context.bytes, moderation_count_);
	CqContext::eqn.set(context.bytes, eqn_);
	CqContext::log_page_size.set(context.bytes, buffer_.page_shift - 12u);
	CqContext::mtt_offset.set(context.bytes, buffer_.mtt_offset);
	CqContext::last_notified_index.set(context.bytes, notified_);
	CqContext::solicited_producer_index.set(context.bytes, solicited_producer_);
	CqContext::consumer_index.set(context.bytes, consumer_);
	CqContext::producer_index.set(context.bytes, producer_);
	CqContext::doorbell_record.set(context.bytes, doorbell_record_);
	return context;
}

} // namespace weft::connectx
