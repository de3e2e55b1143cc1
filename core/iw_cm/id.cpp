// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "manager.hpp"

#include <utility>

namespace iw_cm
{

Id::Id(ib_device *on, const iw_cm_ops &ops, iw_cm_handler handler, void *consumers)
    : iw_cm_id{}, ops_(ops)
{
	device = on;
	cm_handler = handler;
	context = consumers;
	event_handler = Id::handle_event;
}

kern::Result<kern::Ref<Id>> Id::create(ib_device *device, iw_cm_handler handler, void *context)
{
	const iw_cm_ops *const ops = Manager::get().find(device);
	if (!ops)
		return kern::Error{-ENODEV};
	return kern::adopt_ref(new (kern::Gfp::kernel) Id(device, *ops, handler, context));
}

Id::~Id() = default;

bool Id::take(Event event)
{
	lock_.assert_held();
	const Step taken = step(state_, event);
	if (taken.taken)
		state_ = taken.next;
	promised_ = promised_ || (taken.taken && is_promised(state_));
	return taken.taken;
}

kern::Result<> Id::begin(Event event)
{
	kern::Guard guard(lock_);
	return kern::check(take(event) ? 0 : -EINVAL);
}

/* Calls of the consumer. */

kern::Result<> Id::listen(unsigned int backlog)
{
	backlog_ = backlog;
	/* Requests may arrive before the driver's function has returned. */
	KERN_TRY(begin(Event::listen));
	const int status = ops_.create_listen(this, backlog);
	if (status) {
		kern::Guard guard(lock_);
		(void)take(Event::not_done);
	}
	return kern::check(status);
}

void Id::stop_listening()
{
	if (begin(Event::stop))
		ops_.destroy_listen(this);
}

kern::Result<> Id::connect(const iw_cm_param &param)
{
	if (!param.qp || (param.private_data_len && !param.private_data))
		return kern::Error{-EINVAL};
	KERN_TRY(begin(Event::connect));
	const int status = ops_.connect(this, &param);
	if (status) {
		kern::Guard guard(lock_);
		(void)take(Event::not_done);
		promised_ = false;
	}
	return kern::check(status);
}

kern::Result<> Id::accept(const iw_cm_param &param)
{
	if (!param.qp || (param.private_data_len && !param.private_data))
		return kern::Error{-EINVAL};
	KERN_TRY(begin(Event::accept));
	const int status = ops_.accept(this, &param);
	if (status) {
		kern::Guard guard(lock_);
		(void)take(Event::not_done);
		promised_ = false;
	}
	return kern::check(status);
}

kern::Result<> Id::reject(const void *data, u8 length)
{
	if (length && !data)
		return kern::Error{-EINVAL};
	KERN_TRY(begin(Event::reject));
	return kern::check(ops_.reject(this, data, length));
}

kern::Result<> Id::disconnect(bool abrupt)
{
	{
		kern::Guard guard(lock_);
		/* A connection that is not established yet can only be closed abruptly. */
		abrupt = abrupt || state_ == State::connecting;
		if (!take(Event::disconnect))
			return kern::Error{-EINVAL};
	}
	ops_.disconnect(this, abrupt);
	return {};
}

/* Events from the driver. */

int Id::handle_event(iw_cm_id *id, const iw_cm_event *event)
{
	Id &self = of(id);
	switch (event->event) {
	case IW_CM_EVENT_CONNECT_REQUEST:
		return self.handle_request(*event);
	case IW_CM_EVENT_CONNECT_REPLY:
		return self.handle_reply(*event, event->status ? Event::refused : Event::connected);
	case IW_CM_EVENT_ESTABLISHED:
		return self.handle_reply(*event, Event::accepted);
	case IW_CM_EVENT_CLOSE:
		return self.handle_reply(*event, Event::close);
	}
	return -EINVAL;
}

void Id::remember(const iw_cm_event &event)
{
	local = event.local;
	remote = event.remote;
	data_length_ = event.private_data ? event.private_data_len : u8{0};
	if (data_length_)
		__builtin_memcpy(data_, event.private_data, data_length_);
}

int Id::handle_request(const iw_cm_event &event)
{
	auto made = kern::adopt_ref(new (kern::Gfp::kernel) Id(device, ops_, cm_handler, context));
	if (!made)
		return made.error();
	const auto fresh = made.take();
	fresh->remember(event);
	fresh->provider_data = event.provider_data;
	fresh->listener_ = kern::Ref<Id>::share(*this);
	{
		kern::Guard guard(fresh->lock_);
		fresh->state_ = State::requested;
		fresh->post(IW_CM_EVENT_CONNECT_REQUEST, 0);
	}
	kern::Guard guard(lock_);
	if (unreported_ >= backlog_ || !take(Event::request)) {
		fresh->listener_.reset();
		return -ECONNREFUSED;
	}
	unreported_++;
	/* This reference belongs to the consumer, if it accepts the new ID. */
	Manager::get().queue().queue(kern::Ref<Id>(fresh).release()->work_);
	return 0;
}

/*
 * Handles an event of an existing connection. An ID that is being destroyed does not pass the event
 * on, but waits for the last one.
 */
int Id::handle_reply(const iw_cm_event &event, Event step)
{
	const bool last = step == Event::refused || step == Event::close;
	kern::Guard guard(lock_);
	if (take(step)) {
		if (event.event == IW_CM_EVENT_CONNECT_REPLY)
			remember(event);
		post(event.event, event.status);
		Manager::get().queue().queue(work_);
	}
	if (last) {
		promised_ = false;
		changed_.wake_all();
	}
	return 0;
}

void Id::post(iw_cm_event_type type, int status)
{
	lock_.assert_held();
	/* The state table permits at most this number of unreported events. */
	kern_assert(posted_ - reported_ < most_notices);
	notices_[posted_++ % most_notices] = {type, status};
}

/* Reporting events to the handler. */

bool Id::next(iw_cm_event &event)
{
	kern::Guard guard(lock_);
	if (reported_ == posted_ || state_ == State::destroying)
		return false;
	const Notice &notice = notices_[reported_++ % most_notices];
	event = {};
	event.event = notice.event;
	event.status = notice.status;
	event.local = local;
	event.remote = remote;
	event.provider_data = provider_data;
	if (notice.event <= IW_CM_EVENT_CONNECT_REPLY) {
		event.private_data = data_;
		event.private_data_len = data_length_;
	}
	return true;
}

void Id::run()
{
	iw_cm_event event;
	while (next(event)) {
		if (event.event != IW_CM_EVENT_CONNECT_REQUEST) {
			(void)cm_handler(this, &event);
			continue;
		}
		/*
		 * The handler of a listener that no longer listens must not be called. The listener
		 * waits until unreported_ has been decreased below.
		 */
		Id &listener = *listener_;
		bool listens;
		{
			kern::Guard guard(listener.lock_);
			listens = listener.state_ == State::listening;
		}
		const bool kept = listens && cm_handler(this, &event) == 0;
		/*
		 * This must happen before the listener is notified. After the listener has ended,
		 * the device may be removed, and the removal waits only for work items that are
		 * queued by then. reap() destroys this ID after this work item has returned.
		 */
		if (!kept)
			Manager::get().reap(*this);
		{
			kern::Guard guard(listener.lock_);
			listener.unreported_--;
			listener.changed_.wake_all();
		}
		listener_.reset();
		if (!kept)
			return;
	}
}

/* Destruction. */

void Id::release_stream(State from)
{
	switch (from) {
	case State::listening:
		ops_.destroy_listen(this);
		break;
	case State::requested:
		(void)ops_.reject(this, nullptr, 0);
		break;
	case State::connecting:
	case State::established:
	case State::closing:
		ops_.disconnect(this, true);
		break;
	default:
		break;
	}
	changed_.wait([&] {
		kern::Guard guard(lock_);
		return !promised_ && unreported_ == 0;
	});
}

void Id::end()
{
	State from;
	{
		kern::Guard guard(lock_);
		from = state_;
		const bool taken = take(Event::destroy);
		kern_assert(taken);
	}
	release_stream(from);
	work_.cancel();
	kern::Ref<Id>::adopt(this).reset();
}

} // namespace iw_cm
