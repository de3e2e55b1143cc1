// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/reactor.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <exception>
#include <system_error>

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/reactor_states.hpp"

namespace weft
{

namespace
{

// Maximum number of descriptors that are handled at a time.
constexpr int kMostEvents = 64;

FileDescriptor opened(int fd, const char *what)
{
	if (fd < 0)
		throw std::system_error(errno, std::generic_category(), what);
	return FileDescriptor(fd);
}

} // namespace

Reactor::Reactor(const std::string &name, Drive drive, Environment &environment)
    : drive_(drive), environment_(environment),
      poll_(opened(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wakeup_fd_(opened(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      busy_(environment.now())
{
	control(EPOLL_CTL_ADD, wakeup_fd_.get(), EPOLLIN | EPOLLET, nullptr);
	if (drive == Drive::manual)
		return;
	thread_ = std::thread([this] {
		id_.store(std::this_thread::get_id());
		while (!stopping_.load(std::memory_order_acquire))
			turn(Clock::time_point::max());
	});
	pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

Reactor::~Reactor()
{
	stopping_.store(true, std::memory_order_release);
	wake();
	if (thread_.joinable())
		thread_.join();
}

void Reactor::wake() const
{
	const std::uint64_t one = 1;
	[[maybe_unused]] const auto written = ::write(wakeup_fd_.get(), &one, sizeof(one));
}

double Reactor::load() const
{
	const MutexLock lock(mutex_);
	return busy_.share(environment_.now());
}

void Reactor::post(Loop &loop, Task task)
{
	bool ring;
	{
		const MutexLock lock(mutex_);
		posted_.push_back({&loop, std::move(task)});
		ring = std::exchange(asleep_, false);
	}
	if (ring)
		wake();
}

void Reactor::forget(const Loop &loop)
{
	assert(in_thread());
	// Tasks are destroyed without the lock because the destructors of what they own may post.
	std::deque<Posted> gone;
	const auto take = [&](std::deque<Posted> &from) {
		for (Posted &posted : from)
			if (posted.loop == &loop)
				gone.push_back({nullptr, std::move(posted.task)});
		std::erase_if(from, [&](const Posted &posted) { return posted.loop == &loop; });
	};
	{
		const MutexLock lock(mutex_);
		take(posted_);
	}
	take(ready_);
}

void Reactor::control(int operation, int fd, std::uint32_t events, WatchState *state)
{
	epoll_event event{};
	event.events = events;
	event.data.ptr = state;
	if (::epoll_ctl(poll_.get(), operation, fd, &event) && operation != EPOLL_CTL_DEL)
		throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

void Reactor::destroy_later(std::shared_ptr<void> state)
{
	if (depth_)
		to_destroy_.push_back(std::move(state));
}

template<typename Handler>
void Reactor::call(Loop &loop, Handler &&handler)
{
	std::string what;
	try {
		return handler();
	} catch (const std::exception &error) {
		if (!loop.failed_)
			throw;
		what = error.what();
	} catch (...) {
		if (!loop.failed_)
			throw;
		what = "unknown exception";
	}
	loop.failed_(what);
}

std::size_t Reactor::turn(Clock::time_point until)
{
	assert(in_thread());
	struct Depth {
		explicit Depth(Reactor &r) : reactor(r) { reactor.depth_++; }
		~Depth()
		{
			if (--reactor.depth_ == 0)
				std::exchange(reactor.to_destroy_, {}).clear();
		}
		Reactor &reactor;
	} const depth(*this);

	const bool stands = environment_.stands();
	bool at_once = !ready_.empty();
	{
		const MutexLock lock(mutex_);
		at_once = !stands && (at_once || !posted_.empty());
		asleep_ = !at_once;
		// A thread that has more to do stays busy, and reads no clock.
		if (asleep_ && drive_ == Drive::thread)
			busy_.set_busy(false, environment_.now());
	}
	if (at_once)
		until = Clock::time_point::min();
	else if (!stands && !timers_.empty())
		until = std::min(until, timers_.begin()->first.first);
	std::array<epoll_event, kMostEvents> events;
	const int count = environment_.wait(poll_.get(), events.data(), kMostEvents, until);
	{
		const MutexLock lock(mutex_);
		asleep_ = false;
		if (!busy_.busy() && drive_ == Drive::thread)
			busy_.set_busy(true, environment_.now());
		while (!posted_.empty()) {
			ready_.push_back(std::move(posted_.front()));
			posted_.pop_front();
		}
	}

	std::size_t ran = 0;
	for (int i = 0; i < count; ++i) {
		auto *const watch =
			static_cast<WatchState *>(events[static_cast<std::size_t>(i)].data.ptr);
		// The event is for wakeup_fd_, or an earlier handler has stopped this watch.
		if (!watch || !watch->wanted)
			continue;
		const std::uint32_t seen = events[static_cast<std::size_t>(i)].events;
		unsigned ready = watch->wanted;
		if (!(seen & (EPOLLHUP | EPOLLERR)))
			ready &= (seen & EPOLLIN ? unsigned{Watch::kReadable} : 0u) |
				 (seen & EPOLLOUT ? unsigned{Watch::kWritable} : 0u);
		++ran;
		if (ready)
			call(watch->loop, [&] { watch->ready(ready); });
	}
	if (stands)
		return ran;
	ran += run_timers();
	// Tasks that these tasks post run only after descriptors and timers have been served.
	for (std::size_t left = ready_.size(); left && !ready_.empty(); --left) {
		Posted next = std::move(ready_.front());
		ready_.pop_front();
		++ran;
		call(*next.loop, next.task);
	}
	return ran;
}

std::size_t Reactor::run_timers()
{
	if (timers_.empty())
		return 0;
	std::size_t ran = 0;
	const auto now = environment_.now();
	while (!timers_.empty() && timers_.begin()->first.first <= now) {
		TimerState &timer = *timers_.begin()->second;
		timers_.erase(timers_.begin());
		timer.waiting.reset();
		if (!timer.deadline)
			continue;
		if (*timer.deadline > now) {
			timer.wait();
			continue;
		}
		timer.deadline.reset();
		++ran;
		call(timer.loop, timer.fired);
	}
	return ran;
}

} // namespace weft
