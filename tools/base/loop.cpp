// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/loop.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/eventfd.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

namespace weft
{

namespace
{

int make_event()
{
	const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (fd < 0)
		throw std::system_error(errno, std::generic_category(), "eventfd");
	return fd;
}

} // namespace

// What other threads have posted. Asio has a queue for that, too, but wakes its thread while it
// holds the lock that this thread takes first of all: where few CPUs are busy, the woken thread
// runs in place of the waker, finds the lock taken, and waits until the waker gets a CPU again.
class Loop::Inbox
{
public:
	// @bell: written to when run() is due, until close().
	explicit Inbox(int bell) : bell_(bell) {}
	int bell() const { return bell_; }

	// Any thread.
	void push(Task task)
	{
		{
			std::lock_guard lock(mutex_);
			if (closed_)
				return;
			tasks_.push_back(std::move(task));
			if (std::exchange(due_, true))
				return;
		}
		::eventfd_write(bell_, 1);
	}

	// Runs what is there; the loop's thread. What comes meanwhile has its turn after the
	// sockets and timers had theirs.
	void run()
	{
		std::vector<Task> running;
		{
			std::lock_guard lock(mutex_);
			if (!due_)
				return;
			running.swap(spare_);
			running.swap(tasks_);
		}
		for (Task &task : running)
			task();
		running.clear();
		{
			std::lock_guard lock(mutex_);
			spare_.swap(running);
			due_ = !tasks_.empty();
			if (!due_)
				return;
		}
		::eventfd_write(bell_, 1);
	}

	// Destroys what waits, and what is pushed from now on: also by what is destroyed.
	void close()
	{
		std::vector<Task> left;
		std::lock_guard lock(mutex_);
		closed_ = true;
		left.swap(tasks_);
	}

private:
	const int bell_;
	std::mutex mutex_;
	std::vector<Task> tasks_; // under mutex_, as is all that follows
	std::vector<Task> spare_; // has room for the next ones
	bool due_ = false;
	bool closed_ = false;
};

struct Loop::Impl {
	explicit Impl(Mode m)
	    : mode(m), inbox(make_event()), bell(io, inbox.bell()), work(asio::make_work_guard(io))
	{
	}

	void run()
	{
		while (io.run_one())
			inbox.run();
	}

	Mode mode;
	Inbox inbox; // outlives what io's handlers own
	asio::io_context io{1};
	// Nobody reads it and nobody waits for it: what Asio has is registered as edge-triggered,
	// so that each write ends a run_one(), and that is all it is for.
	asio::posix::stream_descriptor bell;
	asio::executor_work_guard<asio::io_context::executor_type> work;
	std::thread thread;
};

Loop::Loop(std::string name, Mode mode)
    : name_(std::move(name)), impl_(std::make_unique<Impl>(mode))
{
	if (mode == Mode::Manual)
		return;
	impl_->thread = std::thread([impl = impl_.get()] { impl->run(); });
	pthread_setname_np(impl_->thread.native_handle(), name_.substr(0, 15).c_str());
}

Loop::~Loop()
{
	impl_->io.stop();
	if (impl_->thread.joinable())
		impl_->thread.join();
	impl_->inbox.close();
}

asio::io_context &Loop::io()
{
	return impl_->io;
}

void Loop::post(Task task)
{
	if (in_loop())
		asio::post(impl_->io, std::move(task));
	else
		impl_->inbox.push(std::move(task));
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
	return impl_->io.poll();
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
		impl_->io.run_one_until(std::min(deadline, now + std::chrono::milliseconds(1)));
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
