// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides code that the fixtures of several modules share: waiting for a condition, objects that
// are too large for a test's stack, and a helper thread.
#pragma once
#include <kern/completion.hpp>
#include <kern/memory.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

namespace kern::kunit
{

/*
 * Waits until the condition is true. Returns false after a minute, which is far longer than any
 * operation takes, even in a debug kernel on a busy host.
 */
template<class Condition>
bool eventually(Condition condition)
{
	const auto deadline = Deadline::in_ms(60'000);

	while (!condition()) {
		if (deadline.passed())
			return condition();
		sleep_us(50, 200);
	}
	return true;
}

/* Allocates an object that is too large for the stack of a test. */
template<class T>
class Boxed
{
public:
	template<class... Args>
	explicit Boxed(Args &&...args)
	{
		auto made = make<T>(Gfp::kernel, std::forward<Args>(args)...);
		if (made.ok())
			object_ = made.take();
	}
	T *operator->() const { return object_.get(); }
	T &operator*() const { return *object_; }
	bool there() const { return static_cast<bool>(object_); }
	/* Returns true if the object was allocated and its ok() returns true. */
	bool ok() const { return there() && object_->ok(); }
	void reset() { object_.reset(); }

private:
	Owned<T> object_;
};

/*
 * A thread that calls a function of the test. The destructor waits until the function has returned.
 */
template<class Body>
class ConcurrentThread
{
public:
	explicit ConcurrentThread(Body body) : body_(body)
	{
		auto made = Thread::create("concurrent", method<&ConcurrentThread::run>, this);
		if (made.ok())
			thread_ = made.take();
	}
	/*
	 * A thread that is stopped before it has started does not call the function, so wait first.
	 */
	~ConcurrentThread()
	{
		if (thread_)
			ended_.wait();
	}
	ConcurrentThread(const ConcurrentThread &) = delete;
	ConcurrentThread &operator=(const ConcurrentThread &) = delete;

	bool ok() const { return static_cast<bool>(thread_); }

private:
	int run()
	{
		body_();
		ended_.complete();
		return 0;
	}

	Body body_;
	Completion ended_;
	Thread thread_;
};

} // namespace kern::kunit
