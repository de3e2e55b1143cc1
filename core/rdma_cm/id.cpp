// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the life cycle of an RDMA CM ID, and the events that its handler receives. */
#include "manager.hpp"

namespace rdma_cm
{
namespace
{

bool is_port_space(rdma_ucm_port_space space)
{
	return space == RDMA_PS_IPOIB || space == RDMA_PS_TCP || space == RDMA_PS_UDP ||
	       space == RDMA_PS_IB;
}

bool is_type(ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC || type == IB_QPT_UD ||
	       type == IB_QPT_XRC_INI || type == IB_QPT_XRC_TGT;
}

/* Returns the event type with which a result is reported to the handler. */
rdma_cm_event_type type_of(Event event)
{
	switch (event) {
	case Event::addr_found:
		return RDMA_CM_EVENT_ADDR_RESOLVED;
	case Event::addr_failed:
		return RDMA_CM_EVENT_ADDR_ERROR;
	case Event::route_found:
		return RDMA_CM_EVENT_ROUTE_RESOLVED;
	case Event::route_failed:
		return RDMA_CM_EVENT_ROUTE_ERROR;
	case Event::joined:
		return RDMA_CM_EVENT_MULTICAST_JOIN;
	case Event::join_failed:
		return RDMA_CM_EVENT_MULTICAST_ERROR;
	case Event::addr_changed:
		return RDMA_CM_EVENT_ADDR_CHANGE;
	default:
		return RDMA_CM_EVENT_DEVICE_REMOVAL;
	}
}

} // namespace

Id::Id(rdma_cm_event_handler handler, void *consumers, rdma_ucm_port_space space, ib_qp_type type,
       kern::Ref<Creator> by, kern::LockClass &handler_class)
    : rdma_cm_id{}, creator(std::move(by)), port_space(space), handler_lock_(handler_class),
      psn_(kern::random_u32() & IB_QPN_MASK)
{
	event_handler = handler;
	context = consumers;
	ps = space;
	qp_type = type;
}

kern::Result<kern::Ref<Id>> Id::create(rdma_cm_event_handler handler, void *context,
				       rdma_ucm_port_space space, ib_qp_type type, bool of_process,
				       const char *caller)
{
	if (!handler || !is_port_space(space) || !is_type(type))
		return kern::Error{-EINVAL};
	auto net = KERN_TRY(Manager::get().namespaces().enter(of_process));
	auto creator = KERN_TRY(
		kern::make_ref<Creator>(kern::Gfp::kernel, caller, of_process, std::move(net)));
	return kern::adopt_ref(new (kern::Gfp::kernel)
				       Id(handler, context, space, type, std::move(creator),
					  KERN_LOCK_CLASS("rdma_cm.handler")));
}

/*
 * The handler lock of the new ID nests inside the listener's handler lock, so it has another lock
 * class.
 */
kern::Result<kern::Ref<Id>> Id::create_for(const Id &listener, ib_qp_type type)
{
	return kern::adopt_ref(new (kern::Gfp::kernel) Id(
		listener.event_handler, listener.context, listener.ps, type, listener.creator,
		KERN_LOCK_CLASS("rdma_cm.handler_of_new")));
}

Id::~Id()
{
	kern_assert(notices_.empty() && groups_.empty() && !connection_ && !bound_device &&
		    !service);
	/*
	 * An ID must fit into a size class of the allocator. The excluded members are larger in a
	 * debug kernel.
	 */
	static_assert(sizeof(Id) - sizeof(handler_lock_) - sizeof(lock_) - sizeof(work_) -
			      sizeof(timer_) <=
		      792);
}

bool Id::in_own_handler() const
{
	return running_in_.load_relaxed() == kern_context();
}

kern::Result<> Id::permit(Event event) const
{
	return kern::check(transition(state_, event).action == Action::refuse ? -EINVAL : 0);
}

bool Id::take(Event event)
{
	lock_.assert_held();
	const Transition step = transition(state_, event);
	if (step.action != Action::take)
		return false;
	state_ = step.next;
	return true;
}

/* Changes the state by an event that permit() has allowed. */
void Id::change(Event event)
{
	const bool taken = take(event);
	kern_assert(taken);
}

void Id::post(Notice &notice, Event event, int status)
{
	lock_.assert_held();
	/* An ID that is being destroyed gets no more events. */
	if (state_ == State::destroying)
		return;
	/* If the notice is still pending, the new result replaces the previous one. */
	notice.event = event;
	notice.status = status;
	if (!notice.node.linked())
		notices_.push_back(notice);
	Manager::get().queue().queue(work_);
}

int Id::deliver(rdma_cm_event &event)
{
	handler_lock_.assert_held();
	running_in_.store_relaxed(kern_context());
	const int result = event_handler(this, &event);
	running_in_.store_relaxed(0);
	return result;
}

/*
 * The function of the work item, which reports the results of resolution. Events of connections are
 * reported by the transport's call of handle().
 */
void Id::run()
{
	for (;;) {
		kern::Guard handling(handler_lock_);
		rdma_cm_event event{};
		{
			kern::Guard guard(lock_);
			Notice *notice = notices_.pop_front();
			if (!notice)
				return;
			Event result = notice->event;
			event.status = notice->status;
			if (result == Event::addr_found &&
			    transition(state_, result).action == Action::take) {
				/*
				 * apply_route() fails if, for example, the device has been removed
				 * meanwhile.
				 */
				if (const auto taken = apply_route(); !taken.ok()) {
					result = Event::addr_failed;
					event.status = taken.error();
				}
			}
			if (!take(result))
				continue;
			if (result == Event::route_found)
				take_path();
			event.event = type_of(result);
			if (notice->group)
				fill_group(event, *notice->group);
		}
		if (deliver(event) != 0) {
			destroy_after_handler();
			return;
		}
	}
}

void Id::handle(const TransportEvent &report)
{
	kern::Guard handling(handler_lock_);
	rdma_cm_event event{};
	{
		kern::Guard guard(lock_);
		if (!take(report.event))
			return;
		event.event = report.type;
		event.status = report.status;
		event.param = report.param;
		if (report.event == Event::responded && qp) {
			const auto connected = connect_qp();
			/*
			 * If connecting the QP fails but the transport controls the QP, the
			 * connection was established. Report that first: its end is reported by
			 * another event.
			 */
			const bool was = connected.ok() || connection_->controls_qp();
			event.event = was ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR;
			event.status = was ? 0 : connected.error();
		}
		/*
		 * If the connection has ended meanwhile, modify_qp() fails, and the next event
		 * reports the end.
		 */
		if (report.event == Event::established && qp && connection_->controls_qp())
			(void)modify_qp(IB_QPS_RTS);
		if (report.event == Event::failed)
			fail_qp();
	}
	if (deliver(event) != 0)
		destroy_after_handler();
}

int Id::offer(Id &fresh, rdma_cm_event &event)
{
	handler_lock_.assert_held();
	running_in_.store_relaxed(kern_context());
	const int result = fresh.deliver(event);
	running_in_.store_relaxed(0);
	return result;
}

void Id::destroy_after_handler()
{
	if (begin_end())
		Manager::get().reap(*this);
}

void Id::lose_device()
{
	kern::Guard guard(lock_);
	post(gone_, Event::device_gone, 0);
}

bool Id::show(ib_resource_info &info)
{
	kern::Guard guard(lock_);
	if (state_ == State::destroying)
		return false;
	auto &shown = info.cm_id;
	static_assert(sizeof(Address) <= sizeof(shown.source));
	shown.port = port_num;
	shown.has_qp = qp_number_ != 0;
	shown.qp_number = qp_number_;
	shown.qp_type = qp_type;
	shown.port_space = ps;
	shown.state = static_cast<u8>(state_);
	__builtin_memcpy(shown.source, &route.addr.src_addr, sizeof(Address));
	__builtin_memcpy(shown.destination, &route.addr.dst_addr, sizeof(Address));
	return true;
}

bool Id::begin_end()
{
	kern::Guard guard(lock_);
	if (!take(Event::destroy))
		return false;
	if (query_)
		ib_sa_cancel_query(query_id_, query_);
	while (notices_.pop_front())
		;
	return true;
}

void Id::end()
{
	Manager &manager = Manager::get();
	manager.stop_waiting(*this);
	timer_.cancel();
	manager.unlisten(*this);
	/*
	 * Destroying the connection closes it as its state requires, and waits for events that are
	 * being delivered.
	 */
	kern::Owned<Connection> connection;
	{
		kern::Guard guard(lock_);
		connection = std::move(connection_);
	}
	connection.reset();
	leave_all();
	work_.cancel();
	/*
	 * Wait for a handler of the listener that uses this ID, and for a task that holds the
	 * handler lock.
	 */
	{
		kern::Guard handling(handler_lock_);
	}
	manager.release(*this);
	manager.detach(*this);
	kern::Ref<Id>::adopt(this).reset();
}

} // namespace rdma_cm
