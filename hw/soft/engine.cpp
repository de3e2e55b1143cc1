// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes work requests of the software device: takes them from the send queues in order, and
// completes them.
#include "engine.hpp"

namespace soft
{

bool disturbed(SoftDevice &device, const void *payload, size_t length)
{
	if (device.lose && device.lose(device.lose_context, payload, length))
		return true;
	return chance(device, device.lost);
}

bool chance(SoftDevice &device, unsigned int per_thousand)
{
	if (per_thousand == 0)
		return false;
	kern::SeededRandom random(device.random);
	device.random = random.next();
	return random.below(1000) < per_thousand;
}

SoftDevice *find_port(u32 lid, u32 &port_num)
{
	for (ib_list_head *links = fabric->devices.next; links != &fabric->devices;
	     links = links->next) {
		SoftDevice &device = device_at(links);
		kern::Guard guard(*device.ports_lock);
		for (u32 port = 1; port <= device.options.ports; port++) {
			const ib_port_attr &attr = device.ports[device.home(port)].attr;
			if (attr.lid && attr.state == IB_PORT_ACTIVE &&
			    lid >> attr.lmc == attr.lid >> attr.lmc) {
				port_num = port;
				return &device;
			}
		}
	}
	return nullptr;
}

namespace
{

/* Returns true, and counts down, if a completion must be lost. */
bool is_lost(kern::Atomic<unsigned int> &left)
{
	unsigned int count = left.load_relaxed();
	while (count > 0)
		if (left.compare_exchange(count, count - 1))
			return true;
	return false;
}

} // namespace

void complete_recv(QpState &qp, const RecvEntry &entry, ib_wc wc, bool solicited)
{
	if (is_lost(qp.lost_receives))
		return;
	wc.wr_id = entry.wr_id;
	wc.qp = qp.qp;
	Cq::state(entry.cq ? entry.cq : qp.qp->recv_cq).push(wc, solicited);
}

void fail_recv(QpState &qp, const RecvEntry &entry, ib_wc_status status)
{
	ib_wc wc = {};
	wc.status = status;
	wc.opcode = IB_WC_RECV;
	complete_recv(qp, entry, wc, false);
}

bool take_recv(QpState &qp, ib_srq *srq, RecvEntry &entry)
{
	if (!srq)
		return qp.recv.take(entry);
	SrqState &state = Srq::state(srq);
	if (!state.queue.take(entry))
		return false;
	entry.cq = srq->ext.cq;
	bool low = false;
	{
		kern::Guard guard(state.queue.lock);
		if (state.queue.ring.count() < state.limit) {
			state.limit = 0;
			low = true;
		}
	}
	if (low)
		rdma::dispatch(IB_EVENT_SRQ_LIMIT_REACHED, srq);
	return true;
}

namespace
{

ib_wc_opcode completion_of(ib_wr_opcode opcode)
{
	switch (opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
		return IB_WC_RDMA_READ;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return IB_WC_COMP_SWAP;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return IB_WC_FETCH_ADD;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		return IB_WC_MASKED_COMP_SWAP;
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		return IB_WC_MASKED_FETCH_ADD;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	case IB_WR_BIND_MW:
		return IB_WC_BIND_MW;
	default:
		return IB_WC_SEND;
	}
}

/*
 * Adds the completion of a send. The request must have been removed from its queue, because a
 * consumer may post another one as soon as it sees the completion.
 */
void complete_send(QpState &qp, const ib_send_wr &wr, ib_wc_status status, u32 byte_len)
{
	if (status == IB_WC_SUCCESS && qp.qp->sq_sig_type == IB_SIGNAL_REQ_WR &&
	    !(wr.send_flags & IB_SEND_SIGNALED))
		return;
	if (is_lost(qp.lost_sends))
		return;
	ib_wc wc = {};
	wc.wr_id = wr.wr_id;
	wc.status = status;
	wc.opcode = completion_of(wr.opcode);
	wc.byte_len = byte_len;
	wc.qp = qp.qp;
	Cq::state(qp.qp->send_cq).push(wc, false);
}

/*
 * Returns the oldest send, or nullptr. It stays valid until pop(), because only the engine removes
 * entries.
 */
SendEntry *first(QpState &qp)
{
	kern::Guard guard(qp.send_lock);
	return qp.send.empty() ? nullptr : &qp.send.front();
}

void pop(QpState &qp)
{
	kern::Guard guard(qp.send_lock);
	qp.pop_send();
}

void set_state(QpState &qp, ib_qp_state state)
{
	kern::Guard guard(qp.send_lock);
	kern::write_once(qp.state, state);
}

/* Flushes at most `limit` sends. Returns the rest of the limit. */
unsigned int flush_sends(QpState &qp, unsigned int limit = ~0u)
{
	for (; limit > 0; limit--) {
		SendEntry *entry = first(qp);
		if (!entry)
			break;
		const ib_send_wr wr = entry->wr;
		pop(qp);
		complete_send(qp, wr, IB_WC_WR_FLUSH_ERR, 0);
	}
	return limit;
}

unsigned int flush_receives(QpState &qp, unsigned int limit = ~0u)
{
	RecvEntry entry;
	for (; limit > 0 && qp.recv.take(entry); limit--)
		fail_recv(qp, entry, IB_WC_WR_FLUSH_ERR);
	return limit;
}

/*
 * Flushes a limited number of requests at a time, as a card does. Returns true if there may be
 * more.
 */
bool flush_some(QpState &qp)
{
	unsigned int limit = 128;

	if (of(qp.qp->device).options.behaviour == SOFT_CARD_RECEIVES_FIRST)
		limit = flush_sends(qp, flush_receives(qp, limit));
	else
		limit = flush_receives(qp, flush_sends(qp, limit));
	return limit == 0;
}

} // namespace

void flush(QpState &qp)
{
	flush_sends(qp);
	flush_receives(qp);
}

void end_stream(QpState &qp)
{
	QpState *other = std::exchange(qp.stream, nullptr);

	if (!other)
		return;
	other->stream = nullptr;
	other->kick();
}

void set_error(QpState &qp)
{
	end_stream(qp);
	set_state(qp, IB_QPS_ERR);
	if (of(qp.qp->device).like_a_card())
		qp.kick();
	else
		flush(qp);
	if (qp.qp->srq)
		qp.raise(IB_EVENT_QP_LAST_WQE_REACHED);
}

bool process(QpState &qp)
{
	if (of(qp.qp->device).is_rnic() && qp.state == IB_QPS_RTS && !qp.stream)
		set_error(qp);
	if (qp.state == IB_QPS_ERR)
		return flush_some(qp);
	/*
	 * Requests that were posted after the error are flushed too (IBA 10.3.1.6). The consumer
	 * must be able to rely on an empty queue before it leaves SQE.
	 */
	if (qp.state == IB_QPS_SQE)
		flush_sends(qp);
	const bool connected = qp.qp->qp_type == IB_QPT_RC || qp.qp->qp_type == IB_QPT_UC ||
			       qp.qp->qp_type == IB_QPT_XRC_INI;
	const bool held =
		qp.qp->qp_type == IB_QPT_UD && of(qp.qp->device).holds_datagrams.load_relaxed();
	while (qp.state == IB_QPS_RTS && !held) {
		SendEntry *entry = first(qp);
		if (!entry)
			break;
		ib_wc_status status = IB_WC_SUCCESS;
		u32 byte_len = 0;
		if (!connected)
			status = send_datagram(qp, *entry);
		else if (carry_out(qp, *entry, status, byte_len) == Outcome::again)
			return true;
		const ib_send_wr wr = entry->wr;
		pop(qp);
		complete_send(qp, wr, status, byte_len);
		if (status == IB_WC_SUCCESS)
			continue;
		if (qp.qp->qp_type == IB_QPT_RC || qp.qp->qp_type == IB_QPT_XRC_INI) {
			set_error(qp);
		} else {
			/*
			 * An error on an unreliable send queue stops that queue only (IBA
			 * 10.3.1.6).
			 */
			set_state(qp, IB_QPS_SQE);
			flush_sends(qp);
		}
	}
	release_held(qp);
	return false;
}

} // namespace soft
