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

/* Calls of the consumer's. */

kern::Result<> Id::listen(unsigned int backlog)
{
	backlog_ = backlog;
	/* Requests may arrive before the driver has returned. */
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
		/* A connection not yet established has no orderly end. */
		abrupt = abrupt || state_ == State::connecting;
		if (!take(Event::disconnect))
			return kern::Error{-EINVAL};
	}
	ops_.disconnect(this, abrupt);
	return {};
}

/* The driver's words. */

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
	/* The consumer's reference, if it takes it. */
	Manager::get().queue().queue(kern::Ref<Id>(fresh).release()->work_);
	return 0;
}

/* The driver's further event is not passed on by an id that is being destroyed and waits for it. */
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
	/* The table has no way to more of them. */
	kern_assert(posted_ - reported_ < most_notices);
	notices_[posted_++ % most_notices] = {type, status};
}

/* The handler. */

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
		 * A listener that ends has no handler any more; it waits until that is known here.
		 */
		Id &listener = *listener_;
		bool listens;
		{
			kern::Guard guard(listener.lock_);
			listens = listener.state_ == State::listening;
		}
		const bool kept = listens && cm_handler(this, &event) == 0;
		/*
		 * This precedes the notification of the listener. After that has ended, the device
		 * may be removed, which waits for the items that are queued by then. The
		 * destruction of this object waits for this work item.
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

/* The end. */

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
