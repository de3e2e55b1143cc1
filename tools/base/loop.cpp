// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/loop.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <future>

#include <sys/epoll.h>

#include "base/reactor_states.hpp"

namespace weft
{

Loop::Loop(std::string name, Mode mode, Environment &environment)
    : name_(std::move(name)),
      own_(std::make_unique<Reactor>(
	      name_, mode == Mode::manual ? Reactor::Drive::manual : Reactor::Drive::thread,
	      environment)),
      reactor_(*own_)
{
}

Loop::Loop(std::string name, Reactor &reactor) : name_(std::move(name)), reactor_(reactor) {}

Loop::~Loop()
{
	if (own_)
		return; // the reactor stops its thread first, and then destroys the remaining tasks
	run([this] { reactor_.forget(*this); });
}

void Loop::contain(std::function<void(const std::string &)> failed)
{
	assert(in_loop());
	failed_ = std::move(failed);
}

void Loop::post(Task task)
{
	reactor_.post(*this, std::move(task));
}

void Loop::run(std::function<void()> task)
{
	if (in_loop())
		return task();
	std::promise<void> done;
	auto result = done.get_future();
	post([&] {
		try {
			task();
			done.set_value();
		} catch (...) {
			done.set_exception(std::current_exception());
		}
	});
	result.get();
}

std::size_t Loop::poll()
{
	std::size_t all = 0;
	while (const std::size_t ran = reactor_.turn(Clock::time_point::min()))
		all += ran;
	return all;
}

bool Loop::run_until(const std::function<bool()> &done, Clock::duration timeout)
{
	const auto deadline = now() + timeout;
	while (!done()) {
		const auto present = now();
		if (present >= deadline)
			return false;
		// Wait in steps, because other threads may also make done() true.
		reactor_.turn(std::min(deadline, present + std::chrono::milliseconds(1)));
	}
	return true;
}

Timer::Timer(Loop &loop, std::function<void()> fired)
    : state_(std::make_shared<Reactor::TimerState>(loop, std::move(fired)))
{
}

Timer::~Timer()
{
	state_->deadline.reset();
	state_->stop_waiting();
	// The object may be destroyed by its own handler.
	Reactor &reactor = state_->loop.reactor();
	reactor.destroy_later(std::move(state_));
}

void Timer::arm(Clock::duration after)
{
	const auto now = state_->loop.now();
	arm_at(after > Clock::time_point::max() - now ? Clock::time_point::max() : now + after);
}

void Timer::arm_at(Clock::time_point deadline)
{
	state_->deadline = deadline;
	if (state_->waiting && state_->waiting->first <= deadline)
		return;
	state_->stop_waiting();
	state_->wait();
}

void Timer::cancel()
{
	state_->deadline.reset();
}

bool Timer::armed() const
{
	return state_->deadline.has_value();
}

Watch::Watch(Loop &loop, int fd, Ready wanted, std::function<void(unsigned)> ready)
    : state_(std::make_shared<Reactor::WatchState>(loop, fd, std::move(ready)))
{
	want(wanted);
}

Watch::~Watch()
{
	want(kNothing);
	Reactor &reactor = state_->loop.reactor();
	reactor.destroy_later(std::move(state_));
}

// A watch without events is not registered, because the end of the file would be reported
// repeatedly.
void Watch::want(unsigned wanted)
{
	if (wanted == state_->wanted)
		return;
	const int operation = !wanted           ? EPOLL_CTL_DEL
			      : !state_->wanted ? EPOLL_CTL_ADD
						: EPOLL_CTL_MOD;
	// The kernel reports the state of kClosed without being asked.
	const std::uint32_t events = (wanted & kReadable ? std::uint32_t{EPOLLIN} : 0u) |
				     (wanted & kWritable ? std::uint32_t{EPOLLOUT} : 0u);
	state_->loop.reactor().control(operation, state_->fd, events, state_.get());
	state_->wanted = wanted;
}

struct Wakeup::State {
	State(Loop &l, std::function<void()> h) : loop(l), handler(std::move(h)) {}

	Loop &loop;
	std::function<void()> handler;
	std::atomic<bool> signalled{false};
	bool alive = true; // loop's thread only
};

Wakeup::Wakeup(Loop &loop, std::function<void()> handler)
    : state_(std::make_shared<State>(loop, std::move(handler)))
{
}

Wakeup::~Wakeup()
{
	state_->alive = false;
}

void Wakeup::signal()
{
	if (state_->signalled.exchange(true, std::memory_order_acq_rel))
		return;
	state_->loop.post([state = state_] {
		// Clear the flag before the handler runs, so that a signal from now on causes
		// another run.
		state->signalled.exchange(false, std::memory_order_acq_rel);
		if (state->alive)
			state->handler();
	});
}

} // namespace weft
