// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Calls a function in soft interrupt context, on the CPU that scheduled it. The function never runs
// in parallel with itself; if it is scheduled while it is running, it runs again.
#pragma once
#include <kern/abi/tasklet.h>
#include <kern/method.hpp>

namespace kern
{

class Tasklet
{
public:
	template<auto Member, class T>
	Tasklet(Method<Member>, T *object)
	{
		item_.run = [](kern_tasklet_item *item) {
			(static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
		kern_tasklet_init(&item_);
	}
	/* Waits for a running function. It must not be scheduled any more. */
	~Tasklet() { cancel(); }
	Tasklet(const Tasklet &) = delete;
	Tasklet &operator=(const Tasklet &) = delete;

	/* Context: any. */
	void schedule() { kern_tasklet_schedule(&item_); }
	/*
	 * Waits until it is neither running nor scheduled. The function must not keep scheduling
	 * itself. May sleep.
	 */
	void cancel() { kern_tasklet_cancel_sync(&item_); }

private:
	kern_tasklet_item item_;
};

} // namespace kern
