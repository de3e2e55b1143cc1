// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Waits until a condition is true. Code that makes it true must wake the queue.
//
//	queue_.wait([&] { return in_flight_.load_acquire() == 0; });
#pragma once
#include <kern/abi/time.h>
#include <kern/abi/wait.h>
#include <kern/lock.hpp>
#include <kern/result.hpp>

namespace kern
{

class WaitQueue
{
public:
	explicit WaitQueue(LockClass &lock_class)
	{
		kern_wait_queue_init(&native_, lock_class.name, &lock_class.key);
	}
	WaitQueue(const WaitQueue &) = delete;
	WaitQueue &operator=(const WaitQueue &) = delete;

	/* Context: any. */
	void wake() { kern_wake_up(&native_); }
	void wake_all() { kern_wake_up_all(&native_); }

	/*
	 * May sleep. The condition is evaluated when the task is about to sleep, so it must not
	 * sleep itself.
	 */
	template<class Condition>
	void wait(Condition condition)
	{
		if (!condition())
			(void)wait_slow(condition, KERN_FOREVER, false);
	}
	/* Returns false if the condition is still false after the time has expired. */
	template<class Condition>
	[[nodiscard]] bool wait_for(unsigned int ms, Condition condition)
	{
		return condition() ||
		       wait_slow(condition, static_cast<long>(kern_ms_to_jiffies(ms)), false) > 0;
	}
	/* Errors: EINTR if a signal arrived first. */
	template<class Condition>
	Result<> wait_interruptible(Condition condition)
	{
		if (condition() || wait_slow(condition, KERN_FOREVER, true) > 0)
			return {};
		return Error{-EINTR};
	}

	kern_wait_queue &native() { return native_; }

private:
	/*
	 * Returns a positive value if the condition is true, 0 if the time has expired, or a
	 * negative value for a signal.
	 */
	template<class Condition>
	long wait_slow(Condition &condition, long timeout, bool interruptible)
	{
		kern_wait_entry entry;
		long result;

		kern_wait_entry_init(&entry);
		for (;;) {
			const long signal = kern_wait_prepare(&native_, &entry, interruptible);
			if (condition()) {
				result = 1;
				break;
			}
			if (signal != 0 || timeout == 0) {
				result = signal;
				break;
			}
			timeout = kern_wait_sleep(timeout);
		}
		kern_wait_finish(&native_, &entry);
		return result;
	}

	kern_wait_queue native_;
};

} // namespace kern
