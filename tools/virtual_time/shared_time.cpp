// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "virtual_time/shared_time.hpp"

#include <cerrno>
#include <system_error>

#include <sys/epoll.h>

namespace weft::virtual_time
{

namespace
{

int look(int poll, epoll_event *events, int most, int milliseconds)
{
	const int ready = ::epoll_wait(poll, events, most, milliseconds);
	if (ready < 0 && errno != EINTR)
		throw std::system_error(errno, std::generic_category(), "epoll_wait");
	return std::max(ready, 0);
}

} // namespace

std::chrono::system_clock::time_point SharedTime::date() const
{
	return std::chrono::system_clock::time_point(
		std::chrono::duration_cast<std::chrono::system_clock::duration>(kDate + passed()));
}

int SharedTime::wait(int poll, epoll_event *events, int most, Clock::time_point until)
{
	constexpr int not_at_all = 0, for_ever = -1;
	// Handle ready descriptors at the current time.
	if (const int ready = look(poll, events, most, not_at_all); ready || until <= now())
		return ready;
	std::optional<Clock::time_point> due = Clock::time_point::max();
	if (outside_)
		due = stands() ? std::nullopt : outside_->due();
	if (!due)
		return look(poll, events, most, for_ever);
	const auto arrival = round_ ? round_->first_arrival() : Clock::time_point::max();
	const auto next = std::min({until, *due, arrival});
	if (round_ && next >= round_->limit())
		round_->complete(next);
	if (next == Clock::time_point::max() || (round_ && next >= round_->limit()))
		return look(poll, events, most, for_ever);
	if (round_ && arrival == next) {
		set(arrival);
		round_->deliver();
		return 0;
	}
	if (until <= *due) {
		set(until);
	} else {
		set(*due);
		outside_->run();
	}
	return 0;
}

} // namespace weft::virtual_time
