// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Queues asynchronous events of devices, and passes them to the registered handlers.
#include <kern/log.hpp>
#include <kern/rcu.hpp>
#include "../verbs/checks.hpp"
#include "../verbs/verbs.hpp"
#include "registry.hpp"

namespace registry
{

namespace
{

constinit kern::Static<kern::WorkQueue> work_queue;

/*
 * Number of event types. The reserve has one entry for each type of unaffiliated event and each
 * port.
 */
constexpr u32 kinds = IB_EVENT_WQ_FATAL + 1;

/* Maximum number of waiting events, without those in the reserve. */
constexpr unsigned int limit = 256;

bool same(const ib_event &a, const ib_event &b)
{
	return a.event == b.event && a.element.port_num == b.element.port_num;
}

ib_event_handler &handler_of(ib_list_head *links)
{
	return *reinterpret_cast<ib_event_handler *>(reinterpret_cast<char *>(links) -
						     __builtin_offsetof(ib_event_handler, links));
}

void unlink(ib_event_handler &handler)
{
	handler.links.prev->next = handler.links.next;
	handler.links.next->prev = handler.links.prev;
	handler.links = {};
}

} // namespace

kern::Result<> create_event_work_queue()
{
	work_queue.construct(
		KERN_TRY(kern::WorkQueue::create("weft_events", kern::WorkQueue::Kind::unbound)));
	return {};
}

void destroy_event_work_queue()
{
	work_queue.destruct();
}

EventQueue::~EventQueue()
{
	kern::Guard guard(lock_);
	while (free_.pop_front())
		;
}

kern::Result<> EventQueue::create_reserve(u32 ports)
{
	// Port 0 is for events of the whole device.
	reserve_ = KERN_TRY(
		kern::make_array<Entry>(kern::Gfp::kernel, std::size_t{kinds} * (ports + 1)));
	kern::Guard guard(lock_);
	for (Entry &entry : reserve_) {
		entry.reserved = true;
		free_.push_back(entry);
	}
	return {};
}

void EventQueue::start()
{
	{
		kern::Guard guard(lock_);
		started_ = true;
	}
	work_queue->queue(work_);
}

void EventQueue::push(const ib_event &event)
{
	// A faulty device may report events without a limit. Beyond the limit, events use the
	// reserve, as if there were no memory.
	Entry *fresh = kern::read_once(waiting_) < limit
			       ? new (kern::Gfp::nowait | kern::Gfp::no_warn) Entry()
			       : nullptr;
	bool start;
	{
		kern::Guard guard(lock_);
		if (!fresh) {
			for (Entry &waiting : pending_)
				if (same(waiting.event, event)) {
					waiting.node.unlink();
					kern::write_once(waiting_, waiting_ - 1);
					fresh = &waiting;
					break;
				}
			if (!fresh)
				fresh = free_.pop_front();
		}
		if (KERN_WARN_ON(!fresh))
			return;
		fresh->event = event;
		pending_.push_back(*fresh);
		kern::write_once(waiting_, waiting_ + 1);
		start = started_;
	}
	if (start)
		work_queue->queue(work_);
}

void EventQueue::release_entry(Entry &entry)
{
	if (entry.reserved)
		free_.push_back(entry);
	else
		kern::destroy(&entry);
}

bool EventQueue::pop(ib_event &event)
{
	kern::Guard guard(lock_);
	Entry *entry = pending_.pop_front();
	if (!entry)
		return false;
	event = entry->event;
	kern::write_once(waiting_, waiting_ - 1);
	release_entry(*entry);
	return true;
}

void EventQueue::deliver()
{
	ib_event event;

	while (pop(event)) {
		verbs::refresh_cache(event);
		kern::Guard guard(handlers_lock_);
		for (ib_list_head *at = handlers_.next, *next; at != &handlers_; at = next) {
			next = at->next;
			ib_event_handler &handler = handler_of(at);
			ib_event copy = event;
			verbs::HandlerSection section;
			handler.handler(&handler, &copy);
		}
	}
}

void EventQueue::stop()
{
	ib_event dropped;
	while (pop(dropped))
		;
	work_.cancel();
	kern::Guard guard(handlers_lock_);
	while (handlers_.next != &handlers_)
		report_left();
}

/*
 * Reports the first handler that has not been unregistered, together with all other handlers of the
 * same owner.
 */
void EventQueue::report_left()
{
	const char *const owner = handler_of(handlers_.next).owner;
	unsigned int count = 0;

	for (ib_list_head *at = handlers_.next, *next; at != &handlers_; at = next) {
		next = at->next;
		if (__builtin_strcmp(handler_of(at).owner, owner) != 0)
			continue;
		unlink(handler_of(at));
		count++;
	}
	verbs::report_leak(device_, "event handler", owner, count);
}

void EventQueue::add(ib_event_handler &handler)
{
	kern::Guard guard(handlers_lock_);
	handler.links = {&handlers_, handlers_.prev};
	handlers_.prev->next = &handler.links;
	handlers_.prev = &handler.links;
}

void EventQueue::remove(ib_event_handler &handler)
{
	kern::Guard guard(handlers_lock_);
	if (KERN_WARN_ON(!handler.links.next))
		return;
	unlink(handler);
}

} // namespace registry

extern "C" {

void ib_register_event_handler(ib_event_handler *event_handler)
{
	KERN_MIGHT_SLEEP();
	event_handler->device->registry->events.add(*event_handler);
}

void ib_unregister_event_handler(ib_event_handler *event_handler)
{
	KERN_MIGHT_SLEEP();
	event_handler->device->registry->events.remove(*event_handler);
}

void ib_dispatch_event(const ib_event *event)
{
	if (verbs::dispatch_affiliated(*event))
		return;

	ib_device *device = event->device;
	if (event->element.port_num > device->phys_port_cnt) {
		if (!verbs::notify_observer(verbs::Rule::mandatory_attribute, device->name,
					    "port_num"))
			kern_error_limited("%s: event %d of port %u, which it does not have\n",
					   device->name, event->event, event->element.port_num);
		return;
	}
	// A driver may report events until its interrupts are disabled, which may happen after the
	// device has been unregistered here.
	kern::rcu::ReadGuard reading;
	if (ib_device_registry *state = kern::rcu::dereference(device->registry))
		state->events.push(*event);
}

} // extern "C"
