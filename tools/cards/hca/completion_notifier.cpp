// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/completion_notifier.hpp"

#include <chrono>
#include <utility>

#include "base/loop.hpp"

namespace weft::hca
{

CompletionNotifier::CompletionNotifier(Loop &loop, std::uint32_t index_mask,
				       std::function<void()> raise)
    : loop_(loop), index_mask_(index_mask), raise_(std::move(raise))
{
}

CompletionNotifier::~CompletionNotifier() = default;

void CompletionNotifier::begin(Armed armed, bool fired)
{
	armed_ = armed;
	fired_ = fired;
}

void CompletionNotifier::written(std::uint32_t producer, bool solicited)
{
	producer_ = producer;
	if (solicited)
		solicited_producer_ = producer;
	if (armed_ == Armed::next || (armed_ == Armed::solicited && solicited))
		notify();
}

void CompletionNotifier::moved_up(std::uint32_t next)
{
	if (solicited_producer_ == producer_)
		solicited_producer_ = next;
	producer_ = next;
}

// Each entry causes at most one event, even if the queue is armed again before the entry is polled.
// Programs rely on this: ib_read_lat -e takes each event for a completion, and its queue overflowed
// when it got two events for one entry. A driver that must report missed events checks the queue
// itself.
void CompletionNotifier::arm_next(std::uint32_t consumer_index)
{
	armed_ = Armed::next;
	if (producer_ != (consumer_index & index_mask_) && producer_ != notified_)
		fire();
}

// A request for solicited events does not narrow an earlier request for all events (IBA 11.4.2.2).
void CompletionNotifier::arm_solicited(std::uint32_t consumer_index)
{
	const auto is_beyond = [this](std::uint32_t index) {
		const std::uint32_t ahead = (solicited_producer_ - index) & index_mask_;
		return ahead != 0 && ahead <= index_mask_ / 2;
	};
	if (armed_ == Armed::no)
		armed_ = Armed::solicited;
	if (is_beyond(consumer_index & index_mask_) && is_beyond(notified_))
		fire();
}

// Called when an entry for which the queue was armed has arrived. Notifies the driver now, or when
// moderation permits.
void CompletionNotifier::notify()
{
	++unnotified_;
	if (moderation_period_ == 0 || (moderation_count_ && unnotified_ >= moderation_count_)) {
		fire();
		return;
	}
	if (!moderation_timer_)
		moderation_timer_ = std::make_unique<Timer>(loop_, [this] {
			if (armed_ != Armed::no)
				fire();
		});
	if (!moderation_timer_->armed())
		moderation_timer_->arm(std::chrono::microseconds(moderation_period_));
}

void CompletionNotifier::fire()
{
	armed_ = Armed::no;
	fired_ = true;
	notified_ = producer_;
	unnotified_ = 0;
	if (moderation_timer_)
		moderation_timer_->cancel();
	raise_();
}

void CompletionNotifier::set_moderation(std::uint16_t count, std::uint16_t period_us)
{
	moderation_count_ = count;
	moderation_period_ = period_us;
	// Report entries that still wait under the old moderation at once.
	if (unnotified_ && armed_ != Armed::no)
		fire();
}

} // namespace weft::hca
