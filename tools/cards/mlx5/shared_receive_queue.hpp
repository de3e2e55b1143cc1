// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements a shared receive queue: a list of entries that the driver links and the card consumes.
// The card has two kinds, receive memory pools and XRC SRQs, which differ in their commands only.
#pragma once

#include <cstdint>
#include <optional>

#include "cards/hca/linked_receives.hpp"
#include "cards/mlx5/event_queue.hpp"

namespace weft::mlx5
{

class SharedReceiveQueue final : public hca::LinkedReceives<SharedReceiveQueue>
{
public:
	struct Settings {
		bool xrc = false;
		std::uint8_t log_size = 0;
		std::uint8_t log_stride = 5;
		std::uint32_t pd = 0;
		std::uint16_t xrc_domain = 0;
		std::uint32_t cqn = 0; // CQ of XRC receives
		std::uint32_t user_index = hw::mlx5::QpContext::no_user_index;
		std::uint16_t limit = 0;
		std::uint64_t record = 0; // bus address of the count of posted entries
	};

	SharedReceiveQueue(const Memory &memory, EventQueues &events, Faults &faults,
			   std::uint32_t number, const Settings &settings, PageList pages);

	const Settings &settings() const { return settings_; }
	const PageList &pages() const { return pages_; }

private:
	friend hca::LinkedReceives<SharedReceiveQueue>;
	std::optional<std::uint32_t> posted() const;
	std::optional<std::uint32_t> read_link(std::uint16_t index);
	void report_limit() { events_.raise(EventType::srq_limit, number()); }
	void report_broken_list() { events_.raise(EventType::srq_catastrophic, number()); }

	const Memory &memory_;
	EventQueues &events_;
	Faults &faults_;
	const Settings settings_;
	const PageList pages_;
};

} // namespace weft::mlx5
