// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Calls a function at a later time, in soft interrupt context, where it must not sleep. If the
// function may sleep, use DelayedWork.
#pragma once
#include <kern/abi/timer.h>
#include <kern/method.hpp>

namespace kern
{

class Timer
{
public:
	template<auto Member, class T>
	Timer(Method<Member>, T *object)
	{
		static constinit kern_lock_class_key key{};
		item_.run = [](kern_timer_item *item) {
			(static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
		kern_timer_init(&item_, __PRETTY_FUNCTION__, &key);
	}
	/* Waits for a running function. The timer must not be started any more. */
	~Timer() { kern_timer_exit(&item_); }
	Timer(const Timer &) = delete;
	Timer &operator=(const Timer &) = delete;

	/* Starts the timer, or restarts it if it is pending. Context: any. */
	void start(unsigned int ms) { kern_timer_start(&item_, ms); }
	bool pending() { return kern_timer_pending(&item_); }
	/* Cancels the timer. Does not wait for a running function. Context: any. */
	bool cancel_async() { return kern_timer_cancel(&item_); }
	/*
	 * Cancels the timer, and waits for a running function. Must not be called from a hard
	 * interrupt, or with a lock held that the function takes.
	 */
	bool cancel() { return kern_timer_cancel_sync(&item_); }

private:
	kern_timer_item item_;
};

} // namespace kern
