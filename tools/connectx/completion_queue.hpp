// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A completion queue: entries, arming, moderation, resize, overrun.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <hw/connectx/contexts.hpp>
#include <hw/connectx/cqe.hpp>

#include "connectx/names.hpp"
#include "mellanox/memory_table.hpp"

namespace weft
{
class Loop;
class Timer;
} // namespace weft

namespace weft::connectx
{

class EventQueues;
class Faults;

class CompletionQueue
{
public:
	struct Services {
		MemoryTable &memory;
		EventQueues &events;
		Loop &loop;
		Faults *faults = nullptr; // of a card that is broken on purpose
	};

	CompletionQueue(const Services &services, std::uint32_t cqn,
			const hw::connectx::CqContext &context);
	~CompletionQueue();
	CompletionQueue(const CompletionQueue &) = delete;
	CompletionQueue &operator=(const CompletionQueue &) = delete;

	std::uint32_t number() const { return cqn_; }
	std::uint32_t uar_page() const { return uar_page_; }
	// Overrun, or its memory has gone: no entry will be written any more, and queue pairs that
	// complete here must go to the error state.
	bool failed() const { return status_ != 0; }

	// Writes an entry; its owner bit is supplied here. An entry that is an error, or for which
	// @solicited is set (a receive whose sender asked for it), satisfies a solicited arm.
	// All data of the work request must be in guest memory before. False: the queue has failed
	// (the asynchronous event was raised here, once).
	[[nodiscard]] bool post(const hw::connectx::Cqe &entry, bool solicited);

	// The arm doorbell: command (uar::cq_arm_...) and the driver's consumer index.
	void arm(std::uint32_t command, std::uint32_t consumer_index);

	// Commands. Fills the buffer with entries owned by the card.
	bool initialise_buffer();
	void set_moderation(std::uint16_t count, std::uint16_t period_us);
	enum class ResizeResult { done, too_small, no_memory };
	ResizeResult resize(const QueueBuffer &buffer, unsigned log_size);
	hw::connectx::CqContext context() const;

private:
	enum class Armed : std::uint8_t { no, solicited, next };

	std::uint32_t size() const { return std::uint32_t{1} << log_size_; }
	bool full();
	bool store(std::uint32_t index, const hw::connectx::Cqe &entry, bool wrong_owner = false);
	void fail(std::uint32_t status, std::uint8_t syndrome);
	void notify();
	void fire();

	const Services services_;
	const std::uint32_t cqn_;
	std::uint32_t uar_page_;
	std::uint32_t eqn_;
	QueueBuffer buffer_;
	std::uint8_t log_size_;
	bool overrun_ignore_;
	std::uint64_t doorbell_record_;

	std::uint32_t status_ = 0;
	Armed armed_ = Armed::no;
	bool fired_ = false;         // the state to show while not armed
	std::uint32_t producer_ = 0; // 24 bits, as are all indexes
	std::uint32_t consumer_ = 0; // as last seen in the doorbell record
	std::uint32_t solicited_producer_ = 0;
	std::uint32_t notified_ = 0;

	std::uint16_t moderation_count_ = 0;
	std::uint16_t moderation_period_ = 0; // microseconds
	std::uint32_t unnotified_ = 0;
	std::unique_ptr<Timer> moderation_timer_;
};

} // namespace weft::connectx
