// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Calls a function in hard interrupt context, as soon as possible, on the CPU that requested the
// call. Drivers of devices without an interrupt use it.
#pragma once
#include <kern/abi/irq_work.h>
#include <kern/method.hpp>

namespace kern
{

class IrqWork
{
public:
	template<auto Member, class T>
	IrqWork(Method<Member>, T *object)
	{
		item_.run = [](kern_irq_work_item *item) {
			(static_cast<T *>(item->context)->*Member)();
		};
		item_.context = object;
		kern_irq_work_init(&item_);
	}
	/* Waits for a running function. It must not be queued any more. */
	~IrqWork() { wait(); }
	IrqWork(const IrqWork &) = delete;
	IrqWork &operator=(const IrqWork &) = delete;

	/*
	 * Returns false if it is queued and has not begun. Context: any. If it is queued again
	 * while it is running, it may run on two CPUs in parallel.
	 */
	bool queue() { return kern_irq_work_queue(&item_); }
	/* Returns when it is neither running nor queued. May sleep. */
	void wait() { kern_irq_work_sync(&item_); }

private:
	kern_irq_work_item item_;
};

} // namespace kern
