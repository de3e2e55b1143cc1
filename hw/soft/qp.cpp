// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the methods for queue pairs, shared receive queues and address handles: creation,
// posting, state transitions. The engine executes the posted requests.
#include "device.hpp"
#include "rnic.h"

namespace soft
{

int RecvQueue::post(const ib_recv_wr *wr, const ib_recv_wr **bad_wr)
{
	kern::Guard guard(lock);
	for (; wr; wr = wr->next) {
		if (wr->num_sge < 0 || static_cast<u32>(wr->num_sge) > max_sge || ring.full()) {
			*bad_wr = wr;
			return ring.full() ? -ENOMEM : -EINVAL;
		}
		RecvEntry &entry = ring.push();
		entry.cq = nullptr;
		entry.wr_id = wr->wr_id;
		entry.num_sge = wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++)
			entry.sges[i] = wr->sg_list[i];
	}
	return 0;
}

bool RecvQueue::take(RecvEntry &entry)
{
	kern::Guard guard(lock);
	if (ring.empty())
		return false;
	entry = ring.front();
	ring.pop();
	return true;
}

QpState::QpState(ib_qp *the_qp, const ib_qp_init_attr &init_attr) : qp(the_qp), init(init_attr)
{
	groups = {&groups, &groups};
}

QpState::~QpState()
{
	work_.cancel();
	event_work_.cancel();
}

void QpState::kick()
{
	fabric->engine.reschedule(work_, 0);
}

void QpState::raise(ib_event_type type)
{
	static_assert(IB_EVENT_QP_LAST_WQE_REACHED < 32);
	raised_.fetch_or(1u << type);
	fabric->engine.queue(event_work_);
}

void QpState::dispatch_raised()
{
	for (u32 left = raised_.exchange(0); left; left &= left - 1)
		rdma::dispatch(static_cast<ib_event_type>(__builtin_ctz(left)), qp);
}

void QpState::run()
{
	bool again;
	{
		kern::Guard guard(fabric->lock);
		again = process(*this);
	}
	if (again)
		fabric->engine.reschedule(work_, 1);
}

namespace
{

/*
 * Returns the size of the typed request for an opcode, or 0 if the protocol or the QP type does not
 * support the opcode.
 */
size_t request_size(bool rnic, ib_qp_type type, ib_wr_opcode opcode)
{
	/* iWARP has neither immediate data nor atomics (RFC 5040, 1.1). */
	if (rnic && (opcode == IB_WR_SEND_WITH_IMM || opcode == IB_WR_RDMA_WRITE_WITH_IMM ||
		     opcode == IB_WR_ATOMIC_CMP_AND_SWP || opcode == IB_WR_ATOMIC_FETCH_AND_ADD ||
		     opcode == IB_WR_MASKED_ATOMIC_CMP_AND_SWP ||
		     opcode == IB_WR_MASKED_ATOMIC_FETCH_AND_ADD))
		return 0;
	const bool reliable = type == IB_QPT_RC || type == IB_QPT_XRC_INI;
	const bool connected = reliable || type == IB_QPT_UC;

	switch (opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
		return connected ? sizeof(ib_send_wr) : sizeof(ib_ud_wr);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return connected ? sizeof(ib_rdma_wr) : 0;
	case IB_WR_RDMA_READ:
		return reliable ? sizeof(ib_rdma_wr) : 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		return reliable ? sizeof(ib_atomic_wr) : 0;
	case IB_WR_SEND_WITH_INV:
	case IB_WR_LOCAL_INV:
		return connected ? sizeof(ib_send_wr) : 0;
	case IB_WR_REG_MR:
		return connected ? sizeof(ib_reg_wr) : 0;
	case IB_WR_BIND_MW:
		return connected ? sizeof(ib_bind_mw_wr) : 0;
	default:
		return 0;
	}
}

int copy_request(const QpState &qp, const ib_send_wr *wr, SendEntry &entry)
{
	const size_t size = request_size(of(qp.qp->device).is_rnic(), qp.qp->qp_type, wr->opcode);

	if (size == 0 || wr->num_sge < 0 ||
	    static_cast<u32>(wr->num_sge) > qp.init.cap.max_send_sge)
		return -EINVAL;
	__builtin_memcpy(&entry.wr, wr,
			 qp.qp->qp_type == IB_QPT_XRC_INI ? sizeof(ib_xrc_wr) : size);
	entry.tries = 0;
	if (wr->send_flags & IB_SEND_INLINE) {
		if (total(wr->sg_list, wr->num_sge) > qp.init.cap.max_inline_data)
			return -EINVAL;
		u8 *to = entry.inline_data;
		for (int i = 0; i < wr->num_sge; i++) {
			__builtin_memcpy(to, reinterpret_cast<const void *>(wr->sg_list[i].addr),
					 wr->sg_list[i].length);
			to += wr->sg_list[i].length;
		}
	}
	for (int i = 0; i < wr->num_sge; i++)
		entry.sges[i] = wr->sg_list[i];
	const bool datagram = qp.qp->qp_type == IB_QPT_UD || qp.qp->qp_type == IB_QPT_SMI ||
			      qp.qp->qp_type == IB_QPT_GSI;
	entry.handle = datagram && entry.ud.ah ? &Ah::state(entry.ud.ah) : nullptr;
	if (entry.handle) {
		entry.handle->query(entry.address);
		entry.handle->requests.fetch_add(1);
	}
	return 0;
}

} // namespace

void QpState::pop_send()
{
	if (AhState *handle = send.front().handle)
		handle->requests.fetch_sub(1);
	send.pop();
}

int QpState::post_send(const ib_send_wr *wr, const ib_send_wr **bad_wr)
{
	int error = 0;
	{
		kern::Guard guard(send_lock);
		if (state < IB_QPS_RTS)
			error = -EINVAL;
		for (; !error && wr; wr = wr->next) {
			error = send.full() ? -ENOMEM
					    : copy_request(*this, wr, send.at(send.count()));
			if (error)
				break;
			send.push();
		}
	}
	if (error)
		*bad_wr = wr;
	kick();
	return error;
}

namespace
{

int post_send(ib_qp *qp, const ib_send_wr *wr, const ib_send_wr **bad_wr)
{
	if (int error = of(qp->device).fault(SOFT_POST_SEND)) {
		*bad_wr = wr;
		return error;
	}
	return Qp::state(qp).post_send(wr, bad_wr);
}

int post_recv(ib_qp *qp, const ib_recv_wr *wr, const ib_recv_wr **bad_wr)
{
	QpState &state = Qp::state(qp);

	int error = of(qp->device).fault(SOFT_POST_RECV);
	if (!error && (qp->srq || kern::read_once(state.state) == IB_QPS_RESET))
		error = -EINVAL;
	if (error) {
		*bad_wr = wr;
		return error;
	}
	error = state.recv.post(wr, bad_wr);
	if (kern::read_once(state.state) == IB_QPS_ERR)
		state.kick();
	return error;
}

/* Assigns the QP number, and makes the QP a possible receiver of messages. */
int give_number(ib_qp *qp, u32 port_num)
{
	SoftDevice &device = of(qp->device);

	kern::Guard guard(fabric->lock);
	if (qp->qp_type == IB_QPT_SMI || qp->qp_type == IB_QPT_GSI) {
		/*
		 * Special QPs have the number 0 or 1 on every port, and messages find them by their
		 * port (MGMT-02).
		 */
		ib_qp *&special = device.ports[port_num].special[qp->qp_type];
		if (special)
			return -EBUSY;
		special = qp;
		qp->qp_num = qp->qp_type == IB_QPT_SMI ? 0 : 1;
		return 0;
	}
	auto number = device.qps->alloc(qp, 0x10, IB_QPN_MASK - 1);
	if (!number)
		return number.error();
	qp->qp_num = number.take();
	return 0;
}

int create_qp(ib_qp *qp, ib_qp_init_attr *init, ib_udata *)
{
	SoftDevice &device = of(qp->device);

	if (int error = device.fault(SOFT_CREATE_QP))
		return error;
	if (init->cap.max_inline_data > max_inline)
		return -EINVAL;
	auto send = Ring<SendEntry>::create(init->cap.max_send_wr);
	if (!send)
		return send.error();
	auto recv = Ring<RecvEntry>::create(qp->srq ? 0 : init->cap.max_recv_wr);
	if (!recv)
		return recv.error();

	QpState &state = Qp::construct(qp, qp, *init);
	state.send = send.take();
	state.recv.ring = recv.take();
	state.recv.max_sge = init->cap.max_recv_sge;
	const int error = give_number(qp, init->port_num);
	if (error)
		Qp::destruct(qp);
	return error;
}

void set_state(QpState &state, ib_qp_state to)
{
	kern::Guard guard(state.send_lock);
	kern::write_once(state.state, to);
}

int destroy_qp(ib_qp *qp, ib_udata *)
{
	SoftDevice &device = of(qp->device);
	QpState &state = Qp::state(qp);

	if (int error = device.fault(SOFT_DESTROY_QP))
		return error;
	{
		kern::Guard guard(fabric->lock);
		if (qp->qp_type == IB_QPT_SMI || qp->qp_type == IB_QPT_GSI)
			device.ports[state.init.port_num].special[qp->qp_type] = nullptr;
		else
			device.qps->erase(qp->qp_num);
		kern_free(state.held);
		end_stream(state);
		/* In RESET, no requests are accepted. */
		const bool flushes = state.state != IB_QPS_RESET;
		set_state(state, IB_QPS_RESET);
		if (flushes)
			flush(state);
	}
	int left = 0;
	for (ib_cq *cq : {qp->send_cq, qp->recv_cq == qp->send_cq ? nullptr : qp->recv_cq})
		if (cq)
			left += Cq::state(cq).detach_qp(*qp);
	if (qp->qp_type == IB_QPT_XRC_TGT) {
		kern::Guard guard(fabric->lock);
		device.srqs->for_each(
			[&](u32, ib_srq &srq) { left += Cq::state(srq.ext.cq).detach_qp(*qp); });
	}
	Qp::destruct(qp);
	return left;
}

int modify_qp(ib_qp *qp, ib_qp_attr *attr, int mask, ib_udata *)
{
	QpState &state = Qp::state(qp);

	if (int error = of(qp->device).fault(SOFT_MODIFY_QP))
		return error;
	kern::Guard guard(fabric->lock);
	const ib_qp_state from = state.state;
	const ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	const bool rnic = of(qp->device).is_rnic();
	const bool as_a_card = of(qp->device).like_a_card();
	/*
	 * The state of an RNIC's QP depends on its stream. Otherwise, rely on the midlayer's table,
	 * except where a card is emulated.
	 */
	if (rnic        ? to == IB_QPS_RTS && !state.stream
	    : as_a_card ? !card_allows(from, to)
			: !ib_modify_qp_is_ok(from, to, qp->qp_type,
					      static_cast<ib_qp_attr_mask>(mask)))
		return rnic ? -ENOTCONN : -EINVAL;
#define TAKE(flag, member)                                                                         \
	if (mask & (flag))                                                                         \
	state.attr.member = attr->member
	TAKE(IB_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IB_QP_PKEY_INDEX, pkey_index);
	TAKE(IB_QP_PORT, port_num);
	TAKE(IB_QP_QKEY, qkey);
	TAKE(IB_QP_AV, ah_attr);
	TAKE(IB_QP_PATH_MTU, path_mtu);
	TAKE(IB_QP_TIMEOUT, timeout);
	TAKE(IB_QP_RETRY_CNT, retry_cnt);
	TAKE(IB_QP_RNR_RETRY, rnr_retry);
	TAKE(IB_QP_RQ_PSN, rq_psn);
	TAKE(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IB_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IB_QP_SQ_PSN, sq_psn);
	TAKE(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IB_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(IB_QP_DEST_QPN, dest_qp_num);
#undef TAKE
	/*
	 * iWARP: both graceful and abortive closing end the stream at once, and move both QPs to
	 * the error state.
	 */
	if (rnic && (to == IB_QPS_SQD || to == IB_QPS_SQE)) {
		set_error(state);
		return 0;
	}
	if (to == IB_QPS_ERR) {
		set_error(state);
	} else if (to == IB_QPS_RESET) {
		end_stream(state);
		set_state(state, to);
		kern::Guard sends(state.send_lock);
		while (!state.send.empty())
			state.pop_send();
		RecvEntry entry;
		while (state.recv.take(entry))
			;
		for (ib_cq *cq : {qp->send_cq, qp->recv_cq})
			if (cq && as_a_card)
				Cq::state(cq).purge(*qp);
	} else {
		set_state(state, to);
		if (to == IB_QPS_SQD && (mask & IB_QP_EN_SQD_ASYNC_NOTIFY) &&
		    attr->en_sqd_async_notify)
			state.raise(IB_EVENT_SQ_DRAINED);
		state.kick();
	}
	return 0;
}

int query_qp(ib_qp *qp, ib_qp_attr *attr, int, ib_qp_init_attr *init)
{
	QpState &state = Qp::state(qp);

	if (int error = of(qp->device).fault(SOFT_QUERY_QP))
		return error;
	kern::Guard guard(fabric->lock);
	*attr = state.attr;
	attr->qp_state = attr->cur_qp_state = state.state;
	attr->cap = state.init.cap;
	*init = state.init;
	return 0;
}

int attach_mcast(ib_qp *qp, const ib_gid *gid, u16 lid, ib_mcast_owner)
{
	if (int error = of(qp->device).fault(SOFT_ATTACH_MCAST))
		return error;
	auto made = kern::make<McastGroup>(kern::Gfp::kernel, McastGroup{{}, *gid, lid});
	if (!made)
		return made.error();
	McastGroup *group = made.take().release();
	kern::Guard guard(fabric->lock);
	ib_list_head &head = Qp::state(qp).groups;
	group->links = {&head, head.prev};
	head.prev->next = &group->links;
	head.prev = &group->links;
	return 0;
}

/* The GID alone identifies the group, as on a card. */
int detach_mcast(ib_qp *qp, const ib_gid *gid, u16)
{
	if (int error = of(qp->device).fault(SOFT_DETACH_MCAST))
		return error;
	kern::Guard guard(fabric->lock);
	ib_list_head &head = Qp::state(qp).groups;
	for (ib_list_head *links = head.next; links != &head; links = links->next) {
		auto *group = reinterpret_cast<McastGroup *>(links);
		if (group->gid == *gid) {
			links->prev->next = links->next;
			links->next->prev = links->prev;
			kern::destroy(group);
			return 0;
		}
	}
	return -EINVAL;
}

int create_srq(ib_srq *srq, ib_srq_init_attr *init, ib_udata *)
{
	if (int error = of(srq->device).fault(SOFT_CREATE_SRQ))
		return error;
	auto ring = Ring<RecvEntry>::create(init->attr.max_wr);
	if (!ring)
		return ring.error();
	SrqState &state = Srq::construct(srq);
	state.queue.ring = ring.take();
	state.queue.max_sge = init->attr.max_sge;
	state.limit = init->attr.srq_limit;
	if (srq->srq_type != IB_SRQT_XRC)
		return 0;
	kern::Guard guard(fabric->lock);
	auto number = of(srq->device).srqs->alloc(srq, 1, IB_QPN_MASK);
	if (number)
		srq->ext.xrc.srq_num = number.value();
	else
		Srq::destruct(srq);
	return number.error();
}

int modify_srq(ib_srq *srq, ib_srq_attr *attr, ib_srq_attr_mask mask, ib_udata *)
{
	SrqState &state = Srq::state(srq);

	if (int error = of(srq->device).fault(SOFT_MODIFY_SRQ))
		return error;
	if (mask & IB_SRQ_MAX_WR)
		return -EOPNOTSUPP;
	kern::Guard guard(state.queue.lock);
	if (attr->srq_limit > state.queue.ring.size())
		return -EINVAL;
	state.limit = attr->srq_limit;
	return 0;
}

int query_srq(ib_srq *srq, ib_srq_attr *attr)
{
	SrqState &state = Srq::state(srq);

	if (int error = of(srq->device).fault(SOFT_QUERY_SRQ))
		return error;
	kern::Guard guard(state.queue.lock);
	*attr = {.max_wr = static_cast<u32>(state.queue.ring.size()),
		 .max_sge = state.queue.max_sge,
		 .srq_limit = state.limit};
	return 0;
}

int destroy_srq(ib_srq *srq, ib_udata *)
{
	if (srq->srq_type == IB_SRQT_XRC) {
		kern::Guard guard(fabric->lock);
		of(srq->device).srqs->erase(srq->ext.xrc.srq_num);
	}
	Srq::destruct(srq);
	return 0;
}

int post_srq_recv(ib_srq *srq, const ib_recv_wr *wr, const ib_recv_wr **bad_wr)
{
	if (int error = of(srq->device).fault(SOFT_POST_SRQ_RECV)) {
		*bad_wr = wr;
		return error;
	}
	return Srq::state(srq).queue.post(wr, bad_wr);
}

int create_ah(ib_ah *ah, rdma_ah_init_attr *init, ib_udata *)
{
	if (int error = of(ah->device).fault(SOFT_CREATE_AH))
		return error;
	Ah::construct(ah, *init->ah_attr);
	return 0;
}

int destroy_ah(ib_ah *ah, u32)
{
	AhState &state = Ah::state(ah);

	if (state.requests.load_relaxed() > 0)
		of(ah->device).addresses_lost.add_relaxed(1);
	Ah::destruct(ah);
	return 0;
}

int modify_ah(ib_ah *ah, rdma_ah_attr *attr)
{
	if (int error = of(ah->device).fault(SOFT_MODIFY_AH))
		return error;
	Ah::state(ah).modify(*attr);
	return 0;
}

int query_ah(ib_ah *ah, rdma_ah_attr *attr)
{
	if (int error = of(ah->device).fault(SOFT_QUERY_AH))
		return error;
	Ah::state(ah).query(*attr);
	return 0;
}

} // namespace

void set_qp_methods(ib_device_ops &ops, bool rnic)
{
	ops.post_send = post_send;
	ops.post_recv = post_recv;
	ops.create_qp = create_qp;
	ops.modify_qp = modify_qp;
	ops.query_qp = query_qp;
	ops.destroy_qp = destroy_qp;
	ops.size_ib_qp = sizeof(Qp);
	ops.create_srq = create_srq;
	ops.modify_srq = modify_srq;
	ops.query_srq = query_srq;
	ops.destroy_srq = destroy_srq;
	ops.post_srq_recv = post_srq_recv;
	ops.size_ib_srq = sizeof(Srq);
	if (rnic)
		return;
	ops.attach_mcast = attach_mcast;
	ops.detach_mcast = detach_mcast;
	ops.create_ah = create_ah;
	ops.destroy_ah = destroy_ah;
	ops.modify_ah = modify_ah;
	ops.query_ah = query_ah;
	ops.size_ib_ah = sizeof(Ah);
}

} // namespace soft

using namespace soft;

extern "C" void soft_lose_completions(struct ib_qp *qp, unsigned int sends, unsigned int receives)
{
	QpState &state = Qp::state(qp);

	state.lost_sends.store_relaxed(sends);
	state.lost_receives.store_relaxed(receives);
}

extern "C" int soft_stream(struct ib_qp *a, struct ib_qp *b)
{
	if (!of(a->device).is_rnic() || !of(b->device).is_rnic() || a == b)
		return -EINVAL;
	QpState &one = Qp::state(a), &other = Qp::state(b);

	kern::Guard guard(fabric->lock);
	if (one.stream || other.stream)
		return -EISCONN;
	one.stream = &other;
	other.stream = &one;
	return 0;
}
