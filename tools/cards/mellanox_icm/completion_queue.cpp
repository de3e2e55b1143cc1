// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/completion_queue.hpp"

#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/eqe.hpp>
#include <hw/mlx4/registers.hpp>

#include "base/loop.hpp"

namespace weft::mellanox_icm
{

namespace cq_state = hw::mlx4::cq_state;
namespace cq_status = hw::mlx4::cq_status;
namespace cq_error_syndrome = hw::mlx4::cq_error_syndrome;
namespace uar = hw::mlx4::uar;

CompletionQueue::CompletionQueue(const Services &services, std::uint32_t cqn,
				 const Settings &settings)
    : services_(services), cqn_(cqn), owner_(settings.owner), index_mask_(settings.index_mask),
      uar_page_(settings.uar_page), eqn_(settings.eqn), buffer_(settings.buffer),
      log_size_(settings.log_size), overrun_ignore_(settings.overrun_ignore),
      record_(settings.record), moderation_count_(settings.moderation_count),
      moderation_period_(settings.moderation_period)
{
	switch (settings.state) {
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

std::uint32_t CompletionQueue::state() const
{
	if (armed_ == Armed::next)
		return cq_state::armed;
	if (armed_ == Armed::solicited)
		return cq_state::armed_solicited;
	return fired_ ? cq_state::fired : cq_state::idle;
}

void CompletionQueue::look_at_record()
{
	if (const auto record = services_.memory.load_record(record_))
		consumer_ = *record & index_mask_;
}

// Whether no slot is free. The driver's doorbell record is looked at only when the index that was
// seen last says so. An index ahead of the producer is a driver's error and counts as full.
bool CompletionQueue::full()
{
	if (((producer_ - consumer_) & index_mask_) < size())
		return false;
	look_at_record();
	return ((producer_ - consumer_) & index_mask_) >= size();
}

bool CompletionQueue::store(std::uint32_t index, QueueEntry entry, bool wrong_owner)
{
	constexpr std::uint8_t owner = 0x80;
	const bool bit = owner_bit(owner_, index, log_size_) != wrong_owner;
	std::uint8_t &last = entry.back();
	last = static_cast<std::uint8_t>((last & ~owner) | (bit ? owner : 0));
	return store_entry(services_.memory, buffer_, index & (size() - 1), entry);
}

bool CompletionQueue::put(QueueEntry entry, bool solicited, bool wrong_owner)
{
	if (failed())
		return false;
	if (!overrun_ignore_ && full()) {
		fail(cq_status::overflow, cq_error_syndrome::overrun);
		return false;
	}
	if (!store(producer_, entry, wrong_owner)) {
		fail_write();
		return false;
	}
	producer_ = (producer_ + 1) & index_mask_;
	if (solicited)
		solicited_producer_ = producer_;
	if (armed_ == Armed::next || (armed_ == Armed::solicited && solicited))
		notify();
	return true;
}

// There is one event for an entry: a queue that is armed again before the entry is polled raises no
// second one. Programs rely on it: ib_read_lat -e takes each event for a completion, and with two
// for one it overran its queue. A driver that has to answer for what was missed looks at the queue.
void CompletionQueue::arm(std::uint32_t command, std::uint32_t consumer_index)
{
	consumer_index &= index_mask_;
	if (command == uar::cq_arm_next) {
		armed_ = Armed::next;
		if (producer_ != consumer_index && producer_ != notified_)
			fire();
	} else if (command == uar::cq_arm_solicited) {
		const auto is_beyond = [this](std::uint32_t index) {
			const std::uint32_t ahead = (solicited_producer_ - index) & index_mask_;
			return ahead != 0 && ahead <= index_mask_ / 2;
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

void CompletionQueue::fail_write()
{
	fail(cq_status::write_failure, cq_error_syndrome::access_violation);
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

} // namespace weft::mellanox_icm
