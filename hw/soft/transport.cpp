// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes the requests of connected QPs: sends, RDMA, atomics, and requests without a peer, such
// as fast registration.
#include "engine.hpp"

namespace soft
{

namespace
{

/* A buffer with the data of a message while it is executed. */
class Bounce
{
public:
	explicit Bounce(size_t length)
	    : memory_(length ? kern_alloc_large(1, length,
						static_cast<unsigned int>(kern::Gfp::kernel))
			     : this)
	{
	}
	~Bounce()
	{
		if (memory_ != this)
			kern_free_large(memory_);
	}
	Bounce(const Bounce &) = delete;
	Bounce &operator=(const Bounce &) = delete;
	explicit operator bool() const { return memory_; }
	void *get() const { return memory_; }

private:
	void *memory_;
};

/*
 * The QP at the other end, and the objects that a message uses there: for XRC, the SRQ that the
 * message specifies, and that SRQ's PD.
 */
struct Peer {
	QpState *state = nullptr;
	ib_qp *qp = nullptr;
	ib_srq *srq = nullptr;
	const ib_pd *pd = nullptr;

	explicit operator bool() const { return state; }
};

/* Returns the QP at the other end, if it accepts messages from this QP. */
Peer find_peer(const QpState &qp, const SendEntry &entry)
{
	if (of(qp.qp->device).is_rnic()) {
		QpState *other = qp.stream;
		/* The peer's consumer may not have moved its QP to RTS yet. */
		if (!other || other->state < IB_QPS_INIT || other->state > IB_QPS_RTS)
			return {};
		return {other, other->qp, other->qp->srq,
			other->qp->srq ? other->qp->srq->pd : other->qp->pd};
	}
	u32 port_num;
	SoftDevice *device = find_port(rdma_ah_get_dlid(&qp.attr.ah_attr), port_num);
	ib_qp *peer = device ? device->qps->load(qp.attr.dest_qp_num) : nullptr;

	if (!peer)
		return {};
	const bool types_fit = qp.qp->qp_type == IB_QPT_XRC_INI ? peer->qp_type == IB_QPT_XRC_TGT
								: peer->qp_type == qp.qp->qp_type;
	QpState &state = Qp::state(peer);
	const bool listens = state.state == IB_QPS_RTR || state.state == IB_QPS_RTS ||
			     state.state == IB_QPS_SQD || state.state == IB_QPS_SQE;
	if (!types_fit || !listens || state.attr.dest_qp_num != qp.qp->qp_num)
		return {};
	if (peer->qp_type != IB_QPT_XRC_TGT)
		return {&state, peer, peer->srq, peer->srq ? peer->srq->pd : peer->pd};
	ib_srq *srq = device->srqs->load(entry.xrc.remote_srqn);
	if (!srq || srq->ext.xrc.xrcd != peer->xrcd)
		return {&state, peer};
	return {&state, peer, srq, srq->pd};
}

/*
 * Rejects the request at the peer: moves the peer's QP to the error state, too (IBA 9.9.3). Returns
 * `status`.
 */
ib_wc_status reject(const Peer &peer, ib_event_type event, ib_wc_status status)
{
	set_error(*peer.state);
	rdma::dispatch(event, peer.qp);
	return status;
}

void deliver(const Peer &peer, const RecvEntry &recv, const SendEntry &entry, size_t length)
{
	ib_wc wc = {};

	wc.status = IB_WC_SUCCESS;
	wc.opcode = entry.wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM ? IB_WC_RECV_RDMA_WITH_IMM
								 : IB_WC_RECV;
	wc.byte_len = static_cast<u32>(length);
	wc.src_qp = peer.state->attr.dest_qp_num;
	if (entry.wr.opcode == IB_WR_SEND_WITH_IMM ||
	    entry.wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		wc.wc_flags |= IB_WC_WITH_IMM;
		wc.ex.imm_data = entry.wr.ex.imm_data;
	} else if (entry.wr.opcode == IB_WR_SEND_WITH_INV) {
		wc.wc_flags |= IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = entry.wr.ex.invalidate_rkey;
	}
	complete_recv(*peer.state, recv, wc, entry.wr.send_flags & IB_SEND_SOLICITED);
}

/* Handles a message for which the peer has no receive buffer. */
Outcome not_ready(QpState &qp, SendEntry &entry, ib_wc_status &status)
{
	if (qp.qp->qp_type == IB_QPT_UC)
		return Outcome::done;
	/* iWARP has no RNR NAK: the stream is terminated (RFC 5041, 7.1). */
	if (of(qp.qp->device).is_rnic()) {
		set_error(*qp.stream);
		status = IB_WC_REM_OP_ERR;
		return Outcome::done;
	}
	if (qp.attr.rnr_retry != 7 && entry.tries++ >= qp.attr.rnr_retry) {
		status = IB_WC_RNR_RETRY_EXC_ERR;
		return Outcome::done;
	}
	return Outcome::again;
}

Outcome send(QpState &qp, const Peer &peer, SendEntry &entry, void *data, size_t length,
	     ib_wc_status &status)
{
	SoftDevice &device = of(peer.qp->device);
	RecvEntry recv;

	if (!take_recv(*peer.state, peer.srq, recv))
		return not_ready(qp, entry, status);
	if (length > total(recv.sges, recv.num_sge)) {
		fail_recv(*peer.state, recv, IB_WC_LOC_LEN_ERR);
		status = reject(peer, IB_EVENT_QP_REQ_ERR, IB_WC_REM_INV_REQ_ERR);
		return Outcome::done;
	}
	if (!copy_to_local(device, *peer.pd, recv.sges, recv.num_sge, 0, data, length,
			   IB_ACCESS_LOCAL_WRITE)) {
		fail_recv(*peer.state, recv, IB_WC_LOC_PROT_ERR);
		status = reject(peer, IB_EVENT_QP_FATAL, IB_WC_REM_OP_ERR);
		return Outcome::done;
	}
	if (entry.wr.opcode == IB_WR_SEND_WITH_INV)
		invalidate(device, entry.wr.ex.invalidate_rkey);
	deliver(peer, recv, entry, length);
	return Outcome::done;
}

Outcome write(QpState &qp, const Peer &peer, SendEntry &entry, void *data, size_t length,
	      ib_wc_status &status)
{
	const bool with_imm = entry.wr.opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	RecvEntry recv;

	if (length &&
	    (!(peer.state->attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE) ||
	     !copy_remote(of(peer.qp->device), peer.pd, entry.rdma.rkey, entry.rdma.remote_addr,
			  data, length, IB_ACCESS_REMOTE_WRITE))) {
		status = reject(peer, IB_EVENT_QP_ACCESS_ERR, IB_WC_REM_ACCESS_ERR);
		return Outcome::done;
	}
	if (!with_imm)
		return Outcome::done;
	if (!take_recv(*peer.state, peer.srq, recv))
		return not_ready(qp, entry, status);
	deliver(peer, recv, entry, length);
	return Outcome::done;
}

ib_wc_status read(QpState &qp, const Peer &peer, const SendEntry &entry, void *data, size_t length)
{
	if (!(peer.state->attr.qp_access_flags & IB_ACCESS_REMOTE_READ) ||
	    !copy_remote(of(peer.qp->device), peer.pd, entry.rdma.rkey, entry.rdma.remote_addr,
			 data, length, IB_ACCESS_REMOTE_READ))
		return reject(peer, IB_EVENT_QP_ACCESS_ERR, IB_WC_REM_ACCESS_ERR);
	return copy_to_local(of(qp.qp->device), *qp.qp->pd, entry.sges, entry.wr.num_sge, 0, data,
			     length, IB_ACCESS_LOCAL_WRITE)
		       ? IB_WC_SUCCESS
		       : IB_WC_LOC_PROT_ERR;
}

u64 atomic_result(const ib_atomic_wr &wr, u64 old)
{
	switch (wr.wr.opcode) {
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return old == wr.compare_add ? wr.swap : old;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		return ((old ^ wr.compare_add) & wr.compare_add_mask) == 0
			       ? (old & ~wr.swap_mask) | (wr.swap & wr.swap_mask)
			       : old;
	default:
		return old + wr.compare_add;
	}
}

ib_wc_status atomic(QpState &qp, const Peer &peer, const SendEntry &entry)
{
	u64 *target = atomic_target(of(peer.qp->device), peer.pd, entry.atomic.rkey,
				    entry.atomic.remote_addr);

	if (!target || !(peer.state->attr.qp_access_flags & IB_ACCESS_REMOTE_ATOMIC))
		return reject(peer, IB_EVENT_QP_ACCESS_ERR, IB_WC_REM_ACCESS_ERR);
	const u64 old = *target;
	if (!copy_to_local(of(qp.qp->device), *qp.qp->pd, entry.sges, entry.wr.num_sge, 0, &old,
			   sizeof(old), IB_ACCESS_LOCAL_WRITE))
		return IB_WC_LOC_PROT_ERR;
	*target = atomic_result(entry.atomic, old);
	return IB_WC_SUCCESS;
}

} // namespace

Outcome carry_out(QpState &qp, SendEntry &entry, ib_wc_status &status, u32 &byte_len)
{
	SoftDevice &device = of(qp.qp->device);
	const ib_pd &pd = *qp.qp->pd;
	const ib_wr_opcode opcode = entry.wr.opcode;

	switch (opcode) {
	case IB_WR_LOCAL_INV:
		status = invalidate(device, entry.wr.ex.invalidate_rkey) ? IB_WC_SUCCESS
									 : IB_WC_LOC_QP_OP_ERR;
		return Outcome::done;
	case IB_WR_REG_MR:
		status = register_region(pd, entry.reg) ? IB_WC_SUCCESS : IB_WC_LOC_QP_OP_ERR;
		return Outcome::done;
	case IB_WR_BIND_MW:
		status = bind_window(device, pd, entry.bind) ? IB_WC_SUCCESS : IB_WC_MW_BIND_ERR;
		return Outcome::done;
	default:
		break;
	}

	const bool fetches = opcode == IB_WR_RDMA_READ;
	const bool is_atomic = opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
			       opcode == IB_WR_ATOMIC_FETCH_AND_ADD ||
			       opcode == IB_WR_MASKED_ATOMIC_CMP_AND_SWP ||
			       opcode == IB_WR_MASKED_ATOMIC_FETCH_AND_ADD;
	const size_t length = is_atomic ? 0 : total(entry.sges, entry.wr.num_sge);
	Bounce data(length);
	if (!data) {
		status = IB_WC_LOC_QP_OP_ERR;
		return Outcome::done;
	}
	if (!fetches && !is_atomic && !copy_from_local(device, pd, entry, data.get(), length)) {
		status = IB_WC_LOC_PROT_ERR;
		return Outcome::done;
	}
	/*
	 * A lost message is sent again at once, at most retry_cnt times. Without a peer, all
	 * attempts would fail.
	 */
	const Peer peer = find_peer(qp, entry);
	for (unsigned int tries = 0; !peer || disturbed(device, data.get(), length); tries++) {
		if (qp.qp->qp_type == IB_QPT_UC)
			return Outcome::done;
		if (!peer || tries == qp.attr.retry_cnt) {
			status = IB_WC_RETRY_EXC_ERR;
			return Outcome::done;
		}
	}
	if (!peer.pd) {
		status = reject(peer, IB_EVENT_QP_REQ_ERR, IB_WC_REM_INV_REQ_ERR);
		return Outcome::done;
	}
	if (is_atomic) {
		status = atomic(qp, peer, entry);
		byte_len = sizeof(u64);
		return Outcome::done;
	}
	if (fetches) {
		status = read(qp, peer, entry, data.get(), length);
		byte_len = static_cast<u32>(length);
		return Outcome::done;
	}
	if (opcode == IB_WR_RDMA_WRITE || opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		return write(qp, peer, entry, data.get(), length, status);
	return send(qp, peer, entry, data.get(), length, status);
}

} // namespace soft
