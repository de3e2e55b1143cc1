// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/loop.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <exception>
#include <future>
#include <optional>
#include <thread>

#include <pthread.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

namespace weft
{

struct Loop::Impl {
	explicit Impl(Mode m) : mode(m), work(asio::make_work_guard(io)) {}

	// Calls @run, which runs handlers, and contains what they throw: then the answer is nothing.
	template<typename F>
	auto contained(F &&run) -> std::optional<decltype(run())>
	{
		std::string what;
		try {
			return run();
		} catch (const std::exception &error) {
			if (!failed)
				throw;
			what = error.what();
		} catch (...) {
			if (!failed)
				throw;
			what = "unknown exception";
		}
		failed(what);
		return std::nullopt;
	}

	Mode mode;
	std::function<void(const std::string &)> failed;
	asio::io_context io{1};
	asio::executor_work_guard<asio::io_context::executor_type> work;
	std::thread thread;
};

Loop::Loop(std::string name, Mode mode)
    : name_(std::move(name)), impl_(std::make_unique<Impl>(mode))
{
	if (mode == Mode::Manual)
		return;
	impl_->thread = std::thread([this] {
		while (!impl_->contained([this] { return impl_->io.run(); })) {
		}
	});
	pthread_setname_np(impl_->thread.native_handle(), name_.substr(0, 15).c_str());
}

Loop::~Loop()
{
	impl_->io.stop();
	if (impl_->thread.joinable())
		impl_->thread.join();
}

asio::io_context &Loop::io()
{
	return impl_->io;
}

void Loop::contain(std::function<void(const std::string &)> failed)
{
	assert(in_loop());
	impl_->failed = std::move(failed);
}

void Loop::post(Task task)
{
	asio::post(impl_->io, std::move(task));
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

bool Loop::in_loop() const
{
	return impl_->mode == Mode::Manual || impl_->thread.get_id() == std::this_thread::get_id();
}

std::size_t Loop::poll()
{
	assert(impl_->mode == Mode::Manual);
	return impl_->contained([this] { return impl_->io.poll(); }).value_or(1);
}

bool Loop::run_until(const std::function<bool()> &done, Clock::duration timeout)
{
	assert(impl_->mode == Mode::Manual);
	const auto deadline = Clock::now() + timeout;
	while (!done()) {
		const auto now = Clock::now();
		if (now >= deadline)
			return false;
		// In steps, because done() may also become true by the work of other threads.
		impl_->contained([&] {
			return impl_->io.run_one_until(
				std::min(deadline, now + std::chrono::milliseconds(1)));
		});
	}
	return true;
}

// The underlying wait may be earlier than the deadline (it was set for a former one): it then
// wakes, sees that it is early, and waits again. So a retransmission timer that every ACK moves
// forward costs one wake-up an interval, not one timer system call a packet.
struct Timer::State : std::enable_shared_from_this<State> {
	State(Loop &l, std::function<void()> f) : timer(l.io()), fired(std::move(f)) {}

	void wait(Clock::time_point until)
	{
		waiting = until;
		timer.expires_at(until);
		timer.async_wait([self = shared_from_this()](const std::error_code &error) {
			if (!error)
				self->woke();
		});
	}

	void woke()
	{
		waiting.reset();
		if (!deadline)
			return;
		if (Clock::now() < *deadline)
			return wait(*deadline);
		deadline.reset();
		fired();
	}

	asio::steady_timer timer;
	std::function<void()> fired;
	std::optional<Clock::time_point> deadline;
	std::optional<Clock::time_point> waiting;
};

Timer::Timer(Loop &loop, std::function<void()> fired)
    : state_(std::make_shared<State>(loop, std::move(fired)))
{
}

Timer::~Timer()
{
	state_->deadline.reset();
	state_->timer.cancel();
}

void Timer::arm_at(Clock::time_point deadline)
{
	state_->deadline = deadline;
	if (!state_->waiting || deadline < *state_->waiting)
		state_->wait(deadline);
}

void Timer::cancel()
{
	state_->deadline.reset();
}

bool Timer::armed() const
{
	return state_->deadline.has_value();
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
		// Cleared before the handler looks: a signal from now on gets a run of its own.
		state->signalled.exchange(false, std::memory_order_acq_rel);
		if (state->alive)
			state->handler();
	});
}

} // namespace weft
