// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/subscription.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>

#include <ib/smp.hpp>

#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

namespace
{

constexpr unsigned kBlockEntries = std::size(ib::PkeyTable{}.pkey);
constexpr unsigned kLastBlock = (1u << limits::kLogPkeys) / kBlockEntries - 1;

// The time between two events doubles up to the longest. A driver that never reacts gets all of
// them within two minutes.
constexpr std::chrono::milliseconds kFirst{50}, kLongest{1600};
constexpr unsigned kMostEvents = 80;

} // namespace

void Subscription::qp1_ready()
{
	if (state_ != State::idle)
		return;
	state_ = State::qp1_reads_table;
	reads_ = 0;
}

void Subscription::pkeys_read(std::uint32_t block)
{
	if (block != kLastBlock)
		return;
	++reads_;
	if (state_ == State::qp1_reads_table && reads_ >= kBlockEntries) {
		state_ = State::asking;
		asked_ = 0;
		reads_at_last_timer_ = reads_;
		ask();
	} else if (state_ == State::asking && reads_ >= 2 * kBlockEntries) {
		state_ = State::found;
		next_event_.cancel();
		found_(earlier_);
	}
}

void Subscription::send_event()
{
	reads_ = 0;
	reads_at_last_timer_ = 0;
	earlier_ = active_();
	events_.port_change(1, hw::mlx5::port_change::pkey);
}

void Subscription::arm_timer()
{
	if (asked_ < kMostEvents)
		next_event_.arm(std::min(kLongest, kFirst * (1 << std::min(asked_, 6u))));
}

void Subscription::ask()
{
	// On a busy host, the driver reads the table for longer than the time between two events.
	const bool is_read = reads_ != reads_at_last_timer_;
	reads_at_last_timer_ = reads_;
	// A driver that does not take its events must not lose others.
	if (!is_read && events_.all_consumed(EventType::port_change)) {
		send_event();
		precedes_activation_ = false;
		++asked_;
	}
	arm_timer();
}

void Subscription::port_activates(unsigned number)
{
	if (state_ != State::asking)
		return;
	// One P_Key event precedes the events of all ports that become active together.
	if (!precedes_activation_ || reads_ > 0) {
		send_event();
		precedes_activation_ = true;
		arm_timer();
	}
	earlier_ &= ~(PortSet{1} << (number - 1));
}

void Subscription::stop()
{
	state_ = State::idle;
	next_event_.cancel();
}

} // namespace weft::mlx5
