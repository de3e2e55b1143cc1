// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "passive.hpp"

#include "connection_data.hpp"

namespace ipoib
{
namespace
{

/*
 * RNR retry count in the REP. The value 7 means that the peer retries without limit while there is
 * no receive buffer (IBA 9.7.5.2.8).
 */
constexpr u8 rnr_retry_for_ever = 7;

} // namespace

/*
 * Returns true if a connection may change from state `from` to state `to`. Only this function
 * defines the transitions.
 */
constexpr bool PassiveConnections::may_follow(State from, State to)
{
	switch (from) {
	case State::answered:
		return to == State::up || to == State::over;
	case State::up:
		return to == State::over;
	case State::over:
		return to == State::quiet;
	case State::quiet:
		return false;
	}
	return false;
}

/*
 * Changes the state, and schedules run() if the connection is over. Returns false, without effect,
 * if the transition is not allowed.
 */
bool PassiveConnections::move_locked(PassiveConnection &connection, State to)
{
	if (!may_follow(connection.state_, to))
		return false;
	connection.state_ = to;
	if (to == State::over)
		work_.queue();
	return true;
}

bool PassiveConnections::move(PassiveConnection &connection, State to)
{
	kern::Guard guard(lock_);
	return move_locked(connection, to);
}

/* Returns true if the limits permit another connection from the peer's port. */
bool PassiveConnections::is_within_limits_locked(const ib_gid &peer)
{
	u32 of_peer = 0;
	for (const PassiveConnection &connection : connections_)
		of_peer += __builtin_memcmp(connection.peer_.raw, peer.raw, sizeof(peer.raw)) == 0;
	return count_ < connections_max && of_peer < of_peer_max;
}

void PassiveConnections::set_takes_unsummed(bool takes)
{
	kern::Guard guard(lock_);
	__atomic_store_n(&takes_unsummed_, takes, __ATOMIC_RELAXED);
	for (PassiveConnection &connection : connections_)
		if (!takes && connection.leaves_checksums_)
			(void)move_locked(connection, State::over);
}

u32 PassiveConnections::size()
{
	kern::Guard guard(lock_);
	return count_;
}

/* Rejects a REQ. Returns the error with which the CM destroys the ID. */
int PassiveConnections::reject(ib_cm_id &id, ib_cm_rej_reason reason)
{
	count(rejected_);
	/* If this fails, the CM rejects the REQ when it destroys the ID. */
	(void)ib_send_cm_rej(&id, reason, nullptr, 0, nullptr, 0);
	return -ECONNREFUSED;
}

int PassiveConnections::accept(ib_cm_id &id, const ib_cm_event &event)
{
	const ib_cm_req_event_param &req = event.param.req_rcvd;
	const auto peer = peer_data(event);
	if (req.qp_type != IB_QPT_RC || !peer.ok())
		return reject(id, IB_CM_REJ_CONSUMER_DEFINED);
	auto made =
		kern::make<PassiveConnection>(kern::Gfp::kernel, *this, id, req.primary_path->dgid);
	if (!made.ok())
		return made.error();
	PassiveConnection &connection = *made.value();
	{
		kern::Guard guard(lock_);
		if (is_within_limits_locked(connection.peer_)) {
			connection.leaves_checksums_ =
				takes_unsummed_ && peer.value().leaves_checksums;
			connections_.push_back(*made.take().release());
			count_++;
		}
	}
	if (made.ok() && made.value())
		return reject(id, IB_CM_REJ_NO_RESOURCES);

	id.context = &connection;
	id.cm_handler = on_event;
	if (auto answered = answer(connection); !answered.ok()) {
		count(rejected_);
		(void)move(connection, State::over);
		return 0;
	}
	count(accepted_);
	return 0;
}

/* Creates the QP of a connection, and sends the REP. Context: handler of the listener. */
kern::Result<> PassiveConnections::answer(PassiveConnection &connection)
{
	ib_qp_init_attr init{};
	init.qp_context = &connection;
	init.send_cq = init.recv_cq = resources_.cq;
	init.srq = resources_.srq;
	/* Nothing is sent on this QP. */
	init.cap.max_send_wr = 1;
	init.cap.max_send_sge = 1;
	init.sq_sig_type = IB_SIGNAL_REQ_WR;
	init.qp_type = IB_QPT_RC;
	connection.qp_ = KERN_TRY(own(ib_create_qp(resources_.pd, &init)));
	KERN_TRY(to_init(*connection.qp_, resources_));
	KERN_TRY(to_rtr(*connection.qp_, *connection.id_));
	KERN_TRY(to_rts(*connection.qp_, *connection.id_));

	const ConnectionData data = connection_data(resources_, connection.leaves_checksums());
	ib_cm_rep_param rep{};
	rep.qp_num = connection.qp_->qp_num;
	rep.starting_psn = connection.qp_->qp_num & psn_mask;
	rep.private_data = &data;
	rep.private_data_len = sizeof(data);
	rep.failover_accepted = 1;
	rep.rnr_retry_count = rnr_retry_for_ever;
	rep.srq = 1;
	return kern::check(ib_send_cm_rep(connection.id_, &rep));
}

/* Never destroys the CM ID; begin_teardown() does that when the connection is over. */
int PassiveConnections::on_event(ib_cm_id *id, const ib_cm_event *event)
{
	auto &connection = *static_cast<PassiveConnection *>(id->context);
	switch (event->event) {
	case IB_CM_RTU_RECEIVED:
	case IB_CM_USER_ESTABLISHED:
		(void)connection.all_.move(connection, State::up);
		break;
	case IB_CM_REP_ERROR:
	case IB_CM_REJ_RECEIVED:
	case IB_CM_DREQ_RECEIVED:
	case IB_CM_DREQ_ERROR:
	case IB_CM_DREP_RECEIVED:
	case IB_CM_TIMEWAIT_EXIT:
	case IB_CM_DEVICE_REMOVAL:
		(void)connection.all_.move(connection, State::over);
		break;
	default:
		break;
	}
	return 0;
}

/* Removes a connection that is over from the list. Returns nullptr if there is none. */
PassiveConnection *PassiveConnections::next_to_end()
{
	kern::Guard guard(lock_);
	for (PassiveConnection &connection : connections_) {
		if (!move_locked(connection, State::quiet))
			continue;
		connection.node_.unlink();
		return &connection;
	}
	return nullptr;
}

/*
 * Destroys the CM ID first, because its handler uses the connection and its QP. This may take long;
 * other connections receive meanwhile.
 */
u32 PassiveConnections::begin_teardown()
{
	u32 taken = 0;
	while (taken < batch_max) {
		PassiveConnection *connection = next_to_end();
		if (!connection)
			break;
		/*
		 * id_ is cleared afterwards, because this call waits for a handler that may use it.
		 */
		ib_destroy_cm_id(connection->id_);
		connection->id_ = nullptr;
		ib_qp_attr attr{};
		attr.qp_state = IB_QPS_ERR;
		/* If the QP cannot be moved to ERR, it receives until it is destroyed. */
		if (connection->qp_)
			(void)ib_modify_qp(connection->qp_, &attr, IB_QP_STATE);
		torn_down_.push_back(*connection);
		taken++;
	}
	return taken;
}

void PassiveConnections::finish_teardown()
{
	u32 ended = 0;
	while (PassiveConnection *connection = torn_down_.pop_front()) {
		if (connection->qp_)
			KERN_WARN_ON(ib_destroy_qp(connection->qp_));
		kern::destroy(connection);
		ended++;
	}
	kern::Guard guard(lock_);
	count_ -= ended;
}

void PassiveConnections::end_all()
{
	kern::Guard guard(lock_);
	for (PassiveConnection &connection : connections_)
		(void)move_locked(connection, State::over);
}

void PassiveConnections::end_idle()
{
	kern::Guard guard(lock_);
	for (PassiveConnection &connection : connections_) {
		if (__atomic_exchange_n(&connection.touched_, false, __ATOMIC_RELAXED))
			connection.idle_rounds_ = 0;
		else if (++connection.idle_rounds_ >= idle_rounds_max)
			(void)move_locked(connection, State::over);
	}
}

} // namespace ipoib
