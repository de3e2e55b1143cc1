// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decides when a completion queue raises an event, depending on how the driver has armed it (IBA
// 11.4.2.2) and on event moderation. Each card implements the rest of its completion queues: CQEs
// and doorbells.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace weft
{
class Loop;
class Timer;
} // namespace weft

namespace weft::hca
{

class CompletionNotifier
{
public:
	enum class Armed : std::uint8_t { no, solicited, next };

	// @index_mask has the bits of producer and consumer indexes. @raise raises the queue's
	// completion event.
	CompletionNotifier(Loop &loop, std::uint32_t index_mask, std::function<void()> raise);
	~CompletionNotifier();
	CompletionNotifier(const CompletionNotifier &) = delete;
	CompletionNotifier &operator=(const CompletionNotifier &) = delete;

	// Sets the state of a new queue: whether it is armed, and whether it counts as having
	// raised its event.
	void begin(Armed armed, bool fired);

	// Called after an entry was written. @producer is the index after it. @solicited is true if
	// the entry also satisfies an arm for solicited events, as an error does.
	void written(std::uint32_t producer, bool solicited);
	// Called for the arm doorbell, with the driver's consumer index.
	void arm_next(std::uint32_t consumer_index);
	void arm_solicited(std::uint32_t consumer_index);
	// Sets the producer index to @next without a new entry for the driver, for a resize.
	// Solicited entries that the driver copies to new positions stay solicited.
	void moved_up(std::uint32_t next);
	void set_moderation(std::uint16_t count, std::uint16_t period_us);

	Armed armed() const { return armed_; }
	// Returns true if the queue has raised its event and was not armed again.
	bool fired() const { return armed_ == Armed::no && fired_; }
	std::uint32_t notified() const { return notified_; }
	std::uint32_t solicited_producer() const { return solicited_producer_; }
	std::uint16_t moderation_count() const { return moderation_count_; }
	std::uint16_t moderation_period() const { return moderation_period_; }

private:
	void notify();
	void fire();

	Loop &loop_;
	const std::uint32_t index_mask_;
	const std::function<void()> raise_;
	Armed armed_ = Armed::no;
	bool fired_ = false;
	std::uint32_t producer_ = 0;
	std::uint32_t solicited_producer_ = 0;
	std::uint32_t notified_ = 0;   // the producer index at the last event
	std::uint32_t unnotified_ = 0; // number of later entries that satisfied an arm
	std::uint16_t moderation_count_ = 0;
	std::uint16_t moderation_period_ = 0; // microseconds
	std::unique_ptr<Timer> moderation_timer_;
};

} // namespace weft::hca
