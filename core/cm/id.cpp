// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the life cycle of a CM ID: its messages, its timeouts, and its destruction. */
#include "device.hpp"

#include <kern/time.hpp>

namespace cm
{

kern::Result<> fill(kern::Bytes to, kern::ConstBytes from)
{
	if (from.size() > to.size())
		return kern::Error{-EINVAL};
	kern::fill(to, 0);
	kern::copy(to, from);
	return {};
}

kern::Result<kern::ConstBytes> data_of(const void *data, std::size_t length)
{
	if (length && !data)
		return kern::Error{-EINVAL};
	return kern::ConstBytes(static_cast<const std::byte *>(data), length);
}

Id::Id(kern::Ref<Device> device, ib_cm_handler handler, void *consumers)
    : ib_cm_id{}, device_(std::move(device))
{
	cm_handler = handler;
	context = consumers;
	this->device = &device_->ib();
}

kern::Result<kern::Owned<Id>> Id::create(kern::Ref<Device> device, ib_cm_handler handler,
					 void *context)
{
	return kern::adopt(new (kern::Gfp::kernel) Id(std::move(device), handler, context));
}

Id::~Id()
{
	kern_assert(life_ == Life::ended && events_.empty() &&
		    (!listening_ || listening_->new_ids.empty()));
	/*
	 * An ID must fit into a size class of the allocator. The excluded members are larger in a
	 * debug kernel.
	 */
	static_assert(sizeof(Id) - sizeof(work_) - sizeof(timer_) <= 344);
}

kern::Result<> Id::permit(Event event) const
{
	switch (transition(state_, event).action) {
	case Action::refuse:
		return kern::Error{-EINVAL};
	case Action::refuse_connected:
		return kern::Error{-EISCONN};
	default:
		return {};
	}
}

u64 Id::own_tid() const
{
	return u64{port_->hi_tid()} << 32 | local_id.value();
}

ib::Mad Id::make(ib::CmAttribute attribute, u64 tid) const
{
	ib::Mad mad{};
	mad.header.base_version = ib::mad_base_version;
	mad.header.mgmt_class = static_cast<std::uint8_t>(ib::MgmtClass::com_mgt);
	mad.header.class_version = ib::cm_class_version;
	mad.header.method = static_cast<std::uint8_t>(ib::MadMethod::send);
	mad.header.tid = tid;
	mad.header.attr_id = static_cast<std::uint16_t>(attribute);
	return mad;
}

ib::Mad Id::make_pair(ib::CmAttribute attribute, u64 tid) const
{
	ib::Mad mad = make(attribute, tid);
	auto &pair = ib::cm_message<ib::CmPair>(mad);
	pair.local_id = local_id.value();
	pair.remote_id = remote_id.value();
	return mad;
}

kern::Result<> Id::send(const ib::Mad &mad, Port::Cause cause, bool again)
{
	return port_->send(mad, address_, cause, again);
}

kern::Result<> Id::ask(const ib::Mad &mad, Event event)
{
	const bool begins = event == Event::send_req || event == Event::send_sidr_req ||
			    event == Event::send_lap;
	RetransmitBuffer asked = KERN_TRY(RetransmitBuffer::create(mad));
	KERN_TRY(send(mad, begins ? Port::Cause::begins : Port::Cause::own));
	asked_ = std::move(asked);
	tries_left_ = max_retries_;
	change(event);
	return {};
}

kern::Result<> Id::answer(const ib::Mad &mad, Event to, Event event)
{
	RetransmitBuffer answered = KERN_TRY(RetransmitBuffer::create(mad));
	KERN_TRY(send(mad));
	answered_ = std::move(answered);
	answered_to_ = to;
	change(event);
	return {};
}

kern::Result<> Id::keep_answer(const ib::Mad &mad, Event to)
{
	answered_ = KERN_TRY(RetransmitBuffer::create(mad));
	answered_to_ = to;
	return {};
}

kern::Result<> Id::prepare_migration()
{
	if (!migration_)
		migration_ = KERN_TRY(kern::make<Migration>(kern::Gfp::kernel));
	return {};
}

void Id::wait(u32 ms)
{
	deadline_ = kern::now_ns() + u64{ms} * 1'000'000;
	timer_queue().reschedule(timer_, ms);
}

void Id::stop_waiting()
{
	deadline_ = 0;
	timer_.cancel_async();
}

/*
 * Changes the state according to the table, and starts or stops the timer. The caller handles all
 * other effects of the event.
 */
void Id::change(Event event)
{
	const State before = state_;
	state_ = transition(before, event).next;
	if (state_ == before)
		return;
	if (!awaits_answer(state_))
		asked_ = {};
	if (before == State::listen)
		device_->listeners.erase(service_id.value(), service_mask.value());
	if (state_ == State::timewait) {
		/* From now on, the peer may use its QP for a new connection. */
		device_->remote_qpns.erase(remote_qpn_link);
		wait(wait_ms(time_ns(qp_timeout_)));
	} else if (!awaits_answer(state_)) {
		stop_waiting();
	} else if (!awaits_answer(before) || event == Event::send_dreq) {
		wait(wait_ms_);
	}
	if (state_ == State::idle)
		forget_connection();
}

/*
 * Removes the ID from the tables of connections, so that the ID can be used for a new connection
 * and the peer's identifiers, too.
 */
void Id::forget_connection()
{
	(resolves_ ? device_->resolutions : device_->remote_ids).erase(peer_link);
	resolves_ = false;
	device_->remote_qpns.erase(remote_qpn_link);
	remote_id = 0;
	migration_.reset();
	answered_ = {};
	answered_to_ = Event::new_req;
}

/*
 * Gives the ID a new communication ID before its next connection, so that delayed messages of the
 * previous connection are not taken for messages of the new one.
 */
kern::Result<> Id::renumber()
{
	const u32 old = local_id.value();
	if (used_) {
		KERN_TRY(device_->add(*this));
		device_->remove(old);
	}
	used_ = true;
	return {};
}

void Id::on_time()
{
	kern::Guard guard(device_->lock());
	if (life_ == Life::ended || deadline_ == 0)
		return;
	if (kern::now_ns() < deadline_) {
		/*
		 * The timer may have expired slightly before the deadline by the clock, so start it
		 * again.
		 */
		timer_queue().reschedule(timer_, kern::rest_ms(deadline_));
		return;
	}
	deadline_ = 0;
	if (state_ == State::timewait) {
		change(Event::timewait_exit);
		deliver(IB_CM_TIMEWAIT_EXIT);
		return;
	}
	if (tries_left_ == 0) {
		give_up();
		return;
	}
	tries_left_--;
	/* A message that could not be sent is treated like a lost one. */
	kern::ignore(send(asked_.mad(), Port::Cause::own, true));
	wait(wait_ms_);
}

/*
 * Ends the exchange because there was no response. If the peer exists, a REJ makes it stop (IBA
 * 12.9.8.3.2).
 */
void Id::give_up()
{
	const State before = state_;
	ib_cm_event_type type;
	switch (before) {
	case State::req_sent:
	case State::mra_req_rcvd:
		type = IB_CM_REQ_ERROR;
		break;
	case State::rep_sent:
	case State::mra_rep_rcvd:
		type = IB_CM_REP_ERROR;
		break;
	case State::dreq_sent:
		type = IB_CM_DREQ_ERROR;
		break;
	case State::sidr_req_sent:
		type = IB_CM_SIDR_REQ_ERROR;
		break;
	default:
		type = IB_CM_LAP_ERROR;
		break;
	}
	if (type == IB_CM_REQ_ERROR || type == IB_CM_REP_ERROR)
		reject_last(IB_CM_REJ_TIMEOUT);
	change(Event::gave_up);
	deliver(type);
}

/* Builds a REJ of the message that the peer has sent last, according to the state. */
ib::Mad Id::make_rej(ib_cm_rej_reason reason) const
{
	ib::Mad mad = make_pair(ib::CmAttribute::rej, tid_);
	auto &rej = ib::cm_message<ib::CmRej>(mad);
	rej.reason = static_cast<u16>(reason);
	switch (state_) {
	case State::req_rcvd:
		/*
		 * The peer does not know the local communication ID yet, so the REJ contains none
		 * (IBA 12.6.7.1).
		 */
		rej.local_id = 0u;
		rej.set_subject(ib::CmSubject::req);
		break;
	case State::mra_req_sent:
		rej.set_subject(ib::CmSubject::req);
		break;
	case State::rep_rcvd:
	case State::mra_rep_sent:
		rej.set_subject(ib::CmSubject::rep);
		break;
	default:
		rej.set_subject(ib::CmSubject::other);
		break;
	}
	return mad;
}

/* Sends a REJ on behalf of the CM itself. It is not an error if the REJ cannot be sent. */
void Id::reject_last(ib_cm_rej_reason reason)
{
	ib::Mad mad = make_rej(reason);
	if (reason == IB_CM_REJ_TIMEOUT) {
		/* The peer finds its connection with this GUID (IBA 12.6.7.2). */
		auto &rej = ib::cm_message<ib::CmRej>(mad);
		const u64 guid = device_->ib().node_guid;
		const ib::be64 own_guid = guid;
		rej.set_info_length(sizeof(own_guid));
		kern::copy(kern::writable_bytes_of(rej.info), kern::bytes_of(own_guid));
	}
	/*
	 * Peers can cause the creation of any number of IDs that the consumer does not know yet, so
	 * the number of their pending sends is limited.
	 */
	kern::ignore(send(mad, life_ == Life::unknown ? Port::Cause::asked : Port::Cause::own));
}

void Id::finish(bool silent)
{
	const Action action = transition(state_, Event::destroy).action;
	/* New IDs that have not been delivered are destroyed with their listener. */
	while (Id *fresh = listening_ ? listening_->new_ids.front() : nullptr) {
		fresh->leave_listener();
		if (!fresh->running_in_.load_relaxed()) {
			fresh->finish();
			reap(kern::Owned<Id>::adopt(fresh));
		}
	}
	if (!silent && !device_->gone()) {
		switch (action) {
		case Action::end_timeout:
			reject_last(IB_CM_REJ_TIMEOUT);
			break;
		case Action::end_reject:
			reject_last(IB_CM_REJ_CONSUMER_DEFINED);
			break;
		case Action::end_disconnect:
			/* An XRC target does not send a DREQ (IBA A14.4.2). */
			if (qp_type_ != IB_QPT_XRC_TGT)
				kern::ignore(send_dreq({}));
			break;
		case Action::end_drep:
			kern::ignore(send_drep({}));
			break;
		case Action::end_sidr:
			kern::ignore(send_sidr_rep({.qp_num = 0,
						    .qkey = 0,
						    .status = IB_SIDR_REJECT,
						    .info = nullptr,
						    .info_length = 0,
						    .private_data = nullptr,
						    .private_data_len = 0}));
			break;
		default:
			break;
		}
	}
	change(Event::destroy);
	stop_waiting();
	forget_connection();
	address_.reset();
	leave_listener();
	while (!events_.empty())
		(void)events_.pop();
	device_->remove(local_id.value());
	life_ = Life::ended;
}

bool Id::lose_device()
{
	change(Event::device_gone);
	stop_waiting();
	forget_connection();
	address_.reset();
	port_ = nullptr;
	if (life_ == Life::unknown && !running_in_.load_relaxed()) {
		finish(true);
		return true;
	}
	deliver(IB_CM_DEVICE_REMOVAL);
	return false;
}

bool Id::in_own_handler() const
{
	return running_in_.load_relaxed() == kern_context();
}

} // namespace cm
