// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Queues the unaffiliated events of one device for its handlers. They can be reported in any
 * context. Handlers run one at a time, in order, in process context (EVENT-02, EVENT-03). No type
 * of event is lost if memory is short, and an event storm cannot exhaust memory: an event that
 * cannot be allocated uses a reserve with one entry for each type and port. If the same event is
 * already pending, it moves to the end of the queue and stands for both.
 */
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace registry
{

class EventQueue
{
public:
	explicit EventQueue(ib_device &device) : device_(device)
	{
		handlers_ = {&handlers_, &handlers_};
	}
	~EventQueue();

	/* Must be called once. Errors: ENOMEM. Context: process. */
	kern::Result<> create_reserve(u32 ports);
	/*
	 * Starts calling handlers; events that were reported before have been kept. Context:
	 * process.
	 */
	void start();
	/*
	 * Called when no more events are reported. Waits for a running handler, drops pending
	 * events, and reports leaked handlers. Context: process.
	 */
	void stop();
	/* Context: any. */
	void push(const ib_event &event);

	/* Context: process. */
	void add(ib_event_handler &handler);
	/*
	 * Removes a handler, and waits for it if it is running. Context: process, not from a
	 * handler.
	 */
	void remove(ib_event_handler &handler);

private:
	struct Entry {
		ib_event event{};
		bool reserved = false;
		kern::ListNode node;
	};
	using Entries = kern::List<Entry, &Entry::node>;

	void deliver();
	void report_left() KERN_REQUIRES(handlers_lock_);
	bool pop(ib_event &event);
	void release_entry(Entry &entry) KERN_REQUIRES(lock_);

	ib_device &device_;
	kern::IrqSpinLock lock_{KERN_LOCK_CLASS("registry.events")};
	Entries pending_ KERN_GUARDED_BY(lock_);
	Entries free_ KERN_GUARDED_BY(lock_);
	/* Length of pending_. Written with the lock held. */
	unsigned int waiting_ = 0;
	bool started_ KERN_GUARDED_BY(lock_) = false;
	kern::OwnedArray<Entry> reserve_;
	/* Held while handlers run. */
	kern::Mutex handlers_lock_{KERN_LOCK_CLASS("registry.handlers")};
	ib_list_head handlers_ KERN_GUARDED_BY(handlers_lock_);
	kern::Work work_{kern::method<&EventQueue::deliver>, this};
};

/* Creates the work queue in which handlers run. Context: process. Errors: ENOMEM. */
kern::Result<> create_event_work_queue();
void destroy_event_work_queue();

} // namespace registry
