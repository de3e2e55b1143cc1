// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/environment.hpp"

#include <cerrno>
#include <random>
#include <system_error>

#include <sys/epoll.h>

namespace weft
{

namespace
{

int counted(int events)
{
	if (events < 0 && errno != EINTR)
		throw std::system_error(errno, std::generic_category(), "epoll");
	return events < 0 ? 0 : events;
}

class HostEnvironment final : public Environment
{
public:
	Clock::time_point now() const override { return std::chrono::steady_clock::now(); }
	std::chrono::system_clock::time_point date() const override
	{
		return std::chrono::system_clock::now();
	}
	std::uint64_t random() override
	{
		std::random_device device;
		return std::uint64_t{device()} << 32 | device();
	}
	int wait(int poll, epoll_event *events, int most, Clock::time_point until) override
	{
		if (until == Clock::time_point::max())
			return counted(::epoll_wait(poll, events, most, -1));
		if (until == Clock::time_point::min())
			return counted(::epoll_wait(poll, events, most, 0));
		const auto left = std::max(until - now(), Clock::duration::zero());
		const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
		const timespec limit{seconds.count(),
				     std::chrono::nanoseconds(left - seconds).count()};
		return counted(::epoll_pwait2(poll, events, most, &limit, nullptr));
	}
};

} // namespace

Environment &Environment::host()
{
	static HostEnvironment environment;
	return environment;
}

std::chrono::system_clock::time_point VirtualEnvironment::date() const
{
	return std::chrono::system_clock::time_point(
		std::chrono::duration_cast<std::chrono::system_clock::duration>(now_.load()));
}

// splitmix64
std::uint64_t VirtualEnvironment::random()
{
	std::uint64_t z = random_.fetch_add(0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

int VirtualEnvironment::wait(int poll, epoll_event *events, int most, Clock::time_point until)
{
	const int ready = counted(::epoll_wait(poll, events, most, 0));
	if (ready == 0 && until != Clock::time_point::max() && until > now())
		now_.store(until.time_since_epoch());
	return ready;
}

} // namespace weft
