// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A shared receive queue: a list of entries that the driver links and the card consumes. The card
// has two kinds, receive memory pools and XRC SRQs, which differ in their commands only.
#pragma once

#include <cstdint>
#include <optional>

#include "cards/hca/work_source.hpp"
#include "cards/mlx5/event_queue.hpp"

namespace weft::mlx5
{

class SharedReceiveQueue final : public hca::SharedReceiveQueue
{
public:
	struct Settings {
		bool xrc = false;
		std::uint8_t log_size = 0;
		std::uint8_t log_stride = 5;
		std::uint32_t pd = 0;
		std::uint16_t xrc_domain = 0;
		std::uint32_t cqn = 0; // of XRC receives
		std::uint32_t user_index = hw::mlx5::QpContext::no_user_index;
		std::uint16_t limit = 0;
		std::uint64_t record = 0; // bus address of the count of posted entries
	};

	SharedReceiveQueue(const Memory &memory, EventQueues &events, std::uint32_t number,
			   const Settings &settings, PageList pages);

	const Settings &settings() const { return settings_; }
	const PageList &pages() const { return pages_; }
	bool failed() const { return failed_; }
	std::uint32_t size() const { return std::uint32_t{1} << settings_.log_size; }
	std::uint32_t stride() const { return std::uint32_t{1} << settings_.log_stride; }
	// The place of an entry in the buffer. Its first 16 bytes are the link; data segments
	// follow.
	std::uint64_t offset(std::uint16_t index) const
	{
		return std::uint64_t{index & (size() - 1)} << settings_.log_stride;
	}

	// How many entries are posted and not taken.
	std::uint32_t available() const;
	// Takes the next entry and returns its index, which is also what the completion names;
	// nothing if none is posted. Raises the limit event when due, and the catastrophic event
	// if the list cannot be read.
	std::optional<std::uint16_t> take();
	void arm_limit(std::uint16_t limit);
	std::uint16_t limit() const { return limit_; }
	std::uint16_t taken() const { return taken_; }

private:
	void check_limit();

	const Memory &memory_;
	EventQueues &events_;
	const Settings settings_;
	const PageList pages_;
	std::uint16_t limit_;
	std::uint16_t head_ = 0;
	std::uint16_t taken_ = 0;
	bool failed_ = false;
};

} // namespace weft::mlx5
