// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a completion queue: entries of 64 bytes in the guest's memory, overrun, resizing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <hw/mlx5/queues.hpp>

#include "cards/hca/completion_notifier.hpp"
#include "cards/mlx5/compression.hpp"
#include "cards/mlx5/event_queue.hpp"

namespace weft
{
class Loop;
}

namespace weft::mlx5
{

class CompletionQueue
{
public:
	struct Services {
		const Memory &memory;
		EventQueues &events;
		Loop &loop;
		Faults &faults;
		HeldCompletions &held;
	};
	struct Settings {
		std::uint8_t log_size = 0;
		// Slots have 128 bytes, and the entry is in the second half.
		bool large_slots = false;
		bool padded = false; // whole slots are written, at the driver's request
		bool overrun_ignore = false;
		bool collapsed = false;        // all entries go to the first slot
		bool compressed = false;       // several completions may be written as mini CQEs
		std::uint32_t mini_format = 0; // a value of hw::mlx5::CqContext
		std::uint32_t uar_page = 0;
		std::uint32_t eqn = 0;
		std::uint64_t record = 0; // bus address of the consumer index
	};

	CompletionQueue(const Services &services, std::uint32_t number, const Settings &settings,
			PageList pages);
	~CompletionQueue() { services_.held.remove(*this); }
	CompletionQueue(const CompletionQueue &) = delete;
	CompletionQueue &operator=(const CompletionQueue &) = delete;

	std::uint32_t number() const { return number_; }
	std::uint32_t uar_page() const { return settings_.uar_page; }
	bool large_slots() const { return settings_.large_slots; }
	// True after an overrun, or if the buffer is not accessible. No more entries are written
	// then, and queue pairs that use this CQ must enter the error state.
	bool failed() const { return status_ != hw::mlx5::queue_status::ok; }

	// Writes an entry and sets its owner bit, or holds the entry back to compress it with those
	// that follow. All data of the request must be in guest memory before. @solicited: the
	// entry also satisfies a solicited arm, as an error does. @front: data for the first half
	// of a slot of 128 bytes. Returns false if there is such data and slots have no such half,
	// or if the queue has failed; its asynchronous event was then raised once.
	[[nodiscard]] bool post(hw::mlx5::Cqe entry, bool solicited,
				std::span<const std::byte> front = {});
	// Writes the entries that are held back.
	void write_held();

	// Handles the arm doorbell.
	void arm(bool solicited, std::uint32_t consumer_index);
	// Handles the arm word of the doorbell record, for a queue whose doorbells are polled.
	// Called when a queue of the same UAR page may have been armed. Returns true if this one
	// was.
	bool arm_by_record();

	// Commands.
	void set_moderation(std::uint16_t count, std::uint16_t period_us)
	{
		notifier_.set_moderation(count, period_us);
	}
	std::uint16_t moderation_count() const { return notifier_.moderation_count(); }
	std::uint16_t moderation_period() const { return notifier_.moderation_period(); }
	enum class Resized : std::uint8_t { done, too_small, unreachable };
	// The driver finds an entry that reports the resize in the old buffer, copies the unpolled
	// entries one position further, and continues in the new buffer.
	Resized resize(PageList pages, unsigned log_size);
	hw::mlx5::CqContext context() const;

	static constexpr std::uint32_t kIndexMask = 0xffffff;

private:
	std::uint32_t size() const { return std::uint32_t{1} << settings_.log_size; }
	void read_consumer_record();
	bool full();
	bool may_hold(const hw::mlx5::Cqe &entry, bool solicited,
		      std::span<const std::byte> front) const;
	std::uint64_t slot_address(std::uint32_t index) const;
	// Offset of the entry in its slot.
	std::uint64_t place_in_slot() const
	{
		return settings_.large_slots ? hw::mlx5::Cqe::size : 0;
	}
	bool store_session();
	bool store(std::uint32_t index, hw::mlx5::Cqe entry, std::span<const std::byte> front = {},
		   bool wrong_owner = false);
	void fail(std::uint32_t status, std::uint32_t syndrome);

	const Services services_;
	const std::uint32_t number_;
	Settings settings_;
	PageList pages_;
	std::uint32_t status_ = hw::mlx5::queue_status::ok;
	std::uint32_t producer_ = 0;
	std::uint32_t consumer_ = 0; // index last read from the doorbell record
	CompressedSession session_;  // follows the entry before producer_
	// For arm_by_record(): the last arm word; the sequence number of the present arm, and that
	// of the last event.
	std::uint32_t arm_word_ = 0;
	bool armed_once_ = false;
	std::optional<std::uint32_t> arm_sequence_;
	std::optional<std::uint32_t> notified_sequence_;
	CompletionNotifier notifier_;
};

} // namespace weft::mlx5
