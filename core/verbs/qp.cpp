// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the verbs for queue pairs (IBA 11.2.5).
#include <kern/atomic.hpp>
#include "checks.hpp"
#include "cq.hpp"
#include "qp.hpp"

using namespace verbs;

namespace
{

constexpr u32 known_create_flags = IB_QP_CREATE_IPOIB_UD_LSO |
				   IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK | IB_QP_CREATE_NETIF_QP |
				   IB_QP_CREATE_NETDEV_USE;
/* All other flags, including the driver's own, are only for trusted consumers. */
constexpr u32 user_create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;

/*
 * Capabilities of a QP type; 0 for an unknown type. They are bits of one byte, because passing one
 * byte through the creation of a QP is cheaper than separate flags.
 */
using QpTraits = u8;
constexpr QpTraits has_send = 1;     // a send queue, and a CQ for it
constexpr QpTraits has_receive = 2;  // a receive queue, or an SRQ, and a CQ for it
constexpr QpTraits may_have_srq = 4; // an SRQ
constexpr QpTraits has_port = 8;     // belongs to a port from its creation
constexpr QpTraits needs_core = 16;  // has an ib_qp_core

constexpr QpTraits describe(Transport transport, ib_qp_type type)
{
	if (transport == Transport::iwarp && type != IB_QPT_RC)
		return 0;
	switch (type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		return has_send | has_receive | has_port;
	case IB_QPT_RC:
	case IB_QPT_UC:
		return has_send | has_receive | may_have_srq;
	case IB_QPT_UD:
		return has_send | has_receive | may_have_srq | needs_core;
	case IB_QPT_XRC_INI:
		return has_send;
	case IB_QPT_XRC_TGT:
		return needs_core;
	default:
		return 0;
	}
}

/* The results of describe() for all transports and types, computed at compile time. */
struct TraitsTable {
	static constexpr unsigned int types = IB_QPT_XRC_TGT + 1;
	QpTraits all[transport_count][types]{};

	constexpr TraitsTable()
	{
		for (unsigned int transport = 0; transport < transport_count; transport++)
			for (unsigned int type = 0; type < types; type++)
				all[transport][type] = describe(static_cast<Transport>(transport),
								static_cast<ib_qp_type>(type));
	}
};
constexpr TraitsTable traits_table;

/* Returns 0 for a type that the device's transport does not have. */
QpTraits traits_of(const ib_device &device, ib_qp_type type)
{
	if (static_cast<unsigned int>(type) >= TraitsTable::types)
		return 0;
	return traits_table.all[static_cast<unsigned int>(device.verbs->transport)][type];
}

int check(const ib_device &device, const ib_qp_init_attr &init, QpTraits traits, bool user)
{
	const ib_device_attr &limits = device.attrs;
	const ib_qp_cap &cap = init.cap;

	if (traits & has_send) {
		if (!belongs(init.send_cq, device) ||
		    cap.max_send_wr > static_cast<u32>(limits.max_qp_wr) ||
		    cap.max_send_sge > static_cast<u32>(limits.max_send_sge))
			return -EINVAL;
	}
	if (traits & has_receive) {
		if (!belongs(init.recv_cq, device))
			return -EINVAL;
		if (!init.srq && (cap.max_recv_wr > static_cast<u32>(limits.max_qp_wr) ||
				  cap.max_recv_sge > static_cast<u32>(limits.max_recv_sge)))
			return -EINVAL;
	}
	if (init.srq && (!(traits & may_have_srq) || !belongs(init.srq, device) ||
			 init.srq->srq_type != IB_SRQT_BASIC))
		return -EINVAL;
	if (traits & has_port && !rdma_is_port_valid(&device, init.port_num))
		return -EINVAL;
	if (init.qp_type == IB_QPT_XRC_TGT && !belongs(init.xrcd, device))
		return -EINVAL;
	if (init.sq_sig_type != IB_SIGNAL_ALL_WR && init.sq_sig_type != IB_SIGNAL_REQ_WR)
		return -EINVAL;
	if (user && (init.create_flags & ~user_create_flags))
		return -EINVAL;
	if (init.create_flags & ~known_create_flags &&
	    init.create_flags < IB_QP_CREATE_RESERVED_START)
		return -EINVAL;
	return 0;
}

/*
 * Determines the state from which a transition begins. The midlayer knows the state that it set
 * last, but the hardware may have moved the QP to ERR since, or to SQE after a failed send. If the
 * caller specifies the current state, it must be possible.
 */
bool begins_at(const ib_qp &qp, const ib_qp_attr &attr, int mask, ib_qp_state &state)
{
	state = kern::read_once(qp.state);
	if (!(mask & IB_QP_CUR_STATE))
		return true;
	const ib_qp_state claimed = attr.cur_qp_state;
	if (claimed != state && claimed != IB_QPS_ERR &&
	    !(claimed == IB_QPS_SQE && (state == IB_QPS_RTS || state == IB_QPS_SQD)))
		return false;
	state = claimed;
	return true;
}

bool valid_path(ib_device &device, u32 port_num, u16 pkey_index, rdma_ah_attr &path)
{
	return rdma_is_port_valid(&device, port_num) &&
	       pkey_index < device.port_immutable[port_num].pkey_tbl_len &&
	       check_address(device, path) == 0;
}

int check_values(const ib_qp &qp, ib_qp_attr &attr, int mask)
{
	ib_device &device = *qp.device;
	const ib_device_attr &limits = device.attrs;
	const u32 port_num = mask & IB_QP_PORT ? attr.port_num : qp.port;

	if ((mask & IB_QP_PORT) && !rdma_is_port_valid(&device, attr.port_num))
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) &&
	    (!rdma_is_port_valid(&device, port_num) ||
	     attr.pkey_index >= device.port_immutable[port_num].pkey_tbl_len))
		return -EINVAL;
	if ((mask & IB_QP_ACCESS_FLAGS) && (attr.qp_access_flags & ~IB_ACCESS_SUPPORTED))
		return -EINVAL;
	if ((mask & IB_QP_AV) && check_address(device, attr.ah_attr))
		return -EINVAL;
	if ((mask & IB_QP_PATH_MTU) && ib_mtu_enum_to_int(attr.path_mtu) < 0)
		return -EINVAL;
	if ((mask & IB_QP_TIMEOUT) && attr.timeout > 31)
		return -EINVAL;
	if ((mask & IB_QP_RETRY_CNT) && attr.retry_cnt > 7)
		return -EINVAL;
	if ((mask & IB_QP_RNR_RETRY) && attr.rnr_retry > 7)
		return -EINVAL;
	if ((mask & IB_QP_MIN_RNR_TIMER) && attr.min_rnr_timer > IB_RNR_TIMER_491_52)
		return -EINVAL;
	if ((mask & IB_QP_RQ_PSN) && attr.rq_psn > 0xffffff)
		return -EINVAL;
	if ((mask & IB_QP_SQ_PSN) && attr.sq_psn > 0xffffff)
		return -EINVAL;
	if ((mask & IB_QP_DEST_QPN) && attr.dest_qp_num > IB_QPN_MASK)
		return -EINVAL;
	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) && attr.max_rd_atomic > limits.max_qp_init_rd_atom)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr.max_dest_rd_atomic > limits.max_qp_rd_atom)
		return -EINVAL;
	if ((mask & IB_QP_PATH_MIG_STATE) && attr.path_mig_state != IB_MIG_MIGRATED &&
	    attr.path_mig_state != IB_MIG_REARM)
		return -EINVAL;
	if (mask & IB_QP_ALT_PATH) {
		if (!(limits.device_cap_flags & IB_DEVICE_AUTO_PATH_MIG) || attr.alt_timeout > 31 ||
		    !valid_path(device, attr.alt_port_num, attr.alt_pkey_index, attr.alt_ah_attr))
			return -EINVAL;
	}
	return 0;
}

/*
 * Opens a handle on an XRC target QP. If the XRC domain is a program's, the handle belongs to the
 * caller, even if another program has created the QP.
 */
ib_qp *open_handle(ib_qp &real, const ib_qp_open_attr &attr, const char *caller)
{
	const ib_udata program{};
	const ib_udata *const owner = real.res.user ? &program : nullptr;
	Allocation<ib_qp> handle(sizeof(ib_qp), memory_for(owner));
	if (!handle)
		return rdma::err_ptr<ib_qp>(-ENOMEM);
	if (int error = handle.belongs_to(real.device, owner))
		return rdma::err_ptr<ib_qp>(error);
	handle->xrcd = real.xrcd;
	handle->real_qp = &real;
	handle->event_handler = attr.event_handler;
	handle->qp_context = attr.qp_context;
	handle->qp_num = real.qp_num;
	handle->qp_type = real.qp_type;
	{
		kern::Guard guard(real.core->handles_lock);
		ring_push(real.core->handles, handle->links);
	}
	use(&real);
	list(handle.get(), caller);
	return handle.release();
}

bool is_handle(const ib_qp &qp)
{
	return qp.real_qp != &qp;
}

} // namespace

extern "C" {

struct ib_qp *__ib_create_qp(struct ib_pd *pd, struct ib_qp_init_attr *qp_init_attr,
			     struct ib_udata *udata, const char *caller)
{
	const ib_qp_init_attr &init = *qp_init_attr;
	const bool without_pd = init.qp_type == IB_QPT_XRC_TGT && !pd;
	if (without_pd ? !is_object(init.xrcd) : !is_object(pd))
		return rdma::err_ptr<ib_qp>(-EINVAL);
	ib_device *device = without_pd ? init.xrcd->device : pd->device;

	may_sleep(device, "ib_create_qp");
	const QpTraits traits = traits_of(*device, init.qp_type);
	/*
	 * QPs that belong to a port are those of the management agents, which only the kernel may
	 * create.
	 */
	if (!traits || (traits & has_port && udata))
		return rdma::err_ptr<ib_qp>(-EINVAL);
	if (int error = check(*device, init, traits, udata))
		return rdma::err_ptr<ib_qp>(error);

	const size_t size = device->ops.size_ib_qp;
	Allocation<ib_qp> qp(size, memory_for(udata), traits & needs_core ? sizeof(ib_qp_core) : 0);
	if (!qp)
		return rdma::err_ptr<ib_qp>(-ENOMEM);
	qp->real_qp = qp.get();
	qp->qp_type = init.qp_type;
	qp->sq_sig_type = init.sq_sig_type;
	qp->state = IB_QPS_RESET;
	qp->event_handler = init.event_handler;
	qp->qp_context = init.qp_context;
	if (traits & has_port)
		qp->port = init.port_num;
	if (traits & has_send)
		qp->send_cq = init.send_cq;
	if (traits & has_receive) {
		qp->recv_cq = init.recv_cq;
		qp->srq = init.srq;
	}
	if (init.qp_type == IB_QPT_XRC_TGT)
		qp->xrcd = init.xrcd;
	else
		qp->pd = pd;
	if (int error = qp.belongs_to(device, udata))
		return rdma::err_ptr<ib_qp>(error);
	/*
	 * A target QP writes to the memory of its domain's SRQs. That memory belongs to a program
	 * if the domain does, so the QP also counts as a program's, even if the kernel has created
	 * it.
	 */
	if (qp->xrcd)
		qp->res.user = qp->xrcd->res.user;
	if (traits & needs_core)
		qp->core = new (qp.tail(size)) ib_qp_core(*qp.get());

	if (int error = VERBS_CALL(device, create_qp, qp.get(), qp_init_attr, udata)) {
		if (qp->core)
			qp->core->~ib_qp_core();
		return rdma::err_ptr<ib_qp>(error);
	}
	use(qp->pd);
	use(qp->xrcd);
	use(qp->send_cq);
	use(qp->recv_cq);
	use(qp->srq);
	list(qp.get(), caller);
	device->verbs->qp_numbers.add(*qp.get());
	if (qp->xrcd) {
		kern::Guard guard(device->verbs->xrc_lock);
		ring_push(qp->xrcd->target_qps, qp->core->in_domain);
	}
	return qp.release();
}

int ib_modify_qp_user(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
		      struct ib_udata *udata)
{
	ib_qp &real = *qp->real_qp;
	const int mask = qp_attr_mask;
	ib_qp_state from;

	may_sleep(qp->device, "ib_modify_qp");
	if (mask & ~IB_QP_ATTR_STANDARD_BITS || !begins_at(real, *qp_attr, mask, from))
		return -EINVAL;
	const ib_qp_state to = mask & IB_QP_STATE ? qp_attr->qp_state : from;
	if (!transition_is_ok(qp->device->verbs->transport, from, to, real.qp_type, mask))
		return -EINVAL;
	/*
	 * Work on a copy, because the driver gets address vectors with their types filled in, and
	 * the caller's attributes must not change.
	 */
	ib_qp_attr attr = *qp_attr;
	if (int error = check_values(real, attr, mask))
		return error;
	if (int error = VERBS_CALL(qp->device, modify_qp, &real, &attr, mask, udata))
		return error;
	if (mask & IB_QP_PORT)
		real.port = attr.port_num;
	if (mask & IB_QP_STATE)
		kern::write_once(real.state, to);
	return 0;
}

int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask)
{
	return ib_modify_qp_user(qp, qp_attr, qp_attr_mask, nullptr);
}

int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
		struct ib_qp_init_attr *qp_init_attr)
{
	may_sleep(qp->device, "ib_query_qp");
	if (!qp->device->ops.query_qp)
		return -EOPNOTSUPP;
	return VERBS_CALL(qp->device, query_qp, qp->real_qp, qp_attr, qp_attr_mask, qp_init_attr);
}

int ib_destroy_qp(struct ib_qp *qp)
{
	ib_device *device = qp->device;

	may_sleep(device, "ib_destroy_qp");
	if (is_handle(*qp))
		return ib_close_qp(qp);
	if (qp->xrcd) {
		/*
		 * Remove the target from its domain first, so that no handle on it can be opened
		 * any more.
		 */
		kern::Guard guard(device->verbs->xrc_lock);
		if (in_use(qp))
			return -EBUSY;
		ring_remove(qp->core->in_domain);
	} else if (in_use(qp)) {
		return -EBUSY;
	}
	RemovalGuard end(qp);
	const int left = VERBS_CALL(device, destroy_qp, qp, nullptr);
	if (left < 0) {
		if (qp->xrcd) {
			kern::Guard guard(device->verbs->xrc_lock);
			ring_push(qp->xrcd->target_qps, qp->core->in_domain);
		}
		return left;
	}
	/* Done functions that access the QP must have returned before it is freed (MGMT-09). */
	if (left > 0 && qp->send_cq)
		flush_cq(*qp->send_cq);
	if (left > 0 && qp->recv_cq && qp->recv_cq != qp->send_cq)
		flush_cq(*qp->recv_cq);
	if (qp->core)
		qp->core->~ib_qp_core();
	end.remove();
	unuse(qp->srq);
	unuse(qp->recv_cq);
	unuse(qp->send_cq);
	unuse(qp->xrcd);
	unuse(qp->pd);
	kern_free(qp);
	return 0;
}

struct ib_qp *__ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *qp_open_attr,
			   const char *caller)
{
	ib_qp *found = nullptr;

	if (!is_object(xrcd))
		return rdma::err_ptr<ib_qp>(-EINVAL);
	may_sleep(xrcd->device, "ib_open_qp");
	if (qp_open_attr->qp_type != IB_QPT_XRC_TGT)
		return rdma::err_ptr<ib_qp>(-EINVAL);
	kern::Guard guard(xrcd->device->verbs->xrc_lock);
	ring_any_of<ib_qp_core, &ib_qp_core::in_domain>(xrcd->target_qps, [&](ib_qp_core &core) {
		if (core.qp.qp_num != qp_open_attr->qp_num)
			return false;
		found = &core.qp;
		return true;
	});
	if (!found)
		return rdma::err_ptr<ib_qp>(-EINVAL);
	return open_handle(*found, *qp_open_attr, caller);
}

int ib_close_qp(struct ib_qp *qp)
{
	if (!is_handle(*qp))
		return -EINVAL;
	may_sleep(qp->device, "ib_close_qp");
	{
		kern::Guard guard(qp->real_qp->core->handles_lock);
		ring_remove(qp->links);
	}
	RemovalGuard end(qp);
	end.remove();
	unuse(qp->real_qp);
	kern_free(qp);
	return 0;
}
}
