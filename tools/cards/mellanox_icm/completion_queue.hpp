// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements completion queues of mlx4 and mthca cards: CQEs, arming, moderation and overrun. Each
// card defines the CQE format and how a queue is resized.
#pragma once

#include <cstdint>

#include "cards/hca/completion_notifier.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/mellanox_icm/queue_memory.hpp"

namespace weft
{
class Loop;
}

namespace weft::mellanox_icm
{

class CompletionQueue
{
public:
	struct Services {
		MemoryTable &memory;
		EventQueues &events;
		Loop &loop;
	};
	struct Settings {
		QueueBuffer buffer;
		std::uint8_t log_size = 0;
		OwnerRule owner = OwnerRule::lap;
		std::uint32_t index_mask = kIndexMask; // mask of producer and consumer indexes
		std::uint32_t uar_page = 0;
		std::uint32_t eqn = 0;
		bool overrun_ignore = false;
		std::uint32_t state = 0; // a value of cq_state
		RecordPlace record;      // doorbell record of the consumer index
		std::uint16_t moderation_count = 0;
		std::uint16_t moderation_period = 0; // microseconds
	};

	CompletionQueue(const CompletionQueue &) = delete;
	CompletionQueue &operator=(const CompletionQueue &) = delete;

	std::uint32_t number() const { return cqn_; }
	std::uint32_t uar_page() const { return uar_page_; }
	// Returns true after an overrun, or if the buffer is not accessible. No more entries are
	// written then, and queue pairs that use this CQ must enter the error state.
	bool failed() const { return status_ != 0; }

	// Handles the arm doorbell. @command is one of uar::cq_arm_..., and @consumer_index the
	// driver's consumer index.
	void arm(std::uint32_t command, std::uint32_t consumer_index);
	void set_moderation(std::uint16_t count, std::uint16_t period_us)
	{
		notifier_.set_moderation(count, period_us);
	}

protected:
	CompletionQueue(const Services &services, std::uint32_t cqn, const Settings &settings);
	~CompletionQueue() = default;

	// Writes an entry and sets its owner bit. @solicited is true if the entry also satisfies an
	// arm for solicited events, as an error does. All data of the request must already be in
	// guest memory. Returns false if the queue has failed. Its asynchronous event has then been
	// raised once.
	[[nodiscard]] bool put(QueueEntry entry, bool solicited, bool wrong_owner = false);

	std::uint32_t size() const { return std::uint32_t{1} << log_size_; }
	bool full();
	void read_consumer_record();
	bool store(std::uint32_t index, QueueEntry entry, bool wrong_owner = false);
	std::uint32_t state() const;
	// Puts the queue into the error state, because its buffer cannot be written.
	void fail_write();

	const Services services_;
	const std::uint32_t cqn_;
	const OwnerRule owner_;
	const std::uint32_t index_mask_;
	std::uint32_t uar_page_;
	std::uint32_t eqn_;
	QueueBuffer buffer_;
	std::uint8_t log_size_;
	bool overrun_ignore_;
	RecordPlace record_;

	std::uint32_t status_ = 0;
	std::uint32_t producer_ = 0;
	std::uint32_t consumer_ = 0; // index that was last read from the doorbell record
	CompletionNotifier notifier_;

private:
	void fail(std::uint32_t status, std::uint8_t syndrome);
};

} // namespace weft::mellanox_icm
