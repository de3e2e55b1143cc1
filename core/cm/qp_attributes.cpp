// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Computes the QP attributes that a consumer sets in each state of a connection (IBA 12.9.7,
 * 11.2.5.2). The starting PSN in a message is the first PSN that the receiver of the message will
 * send (IBA 12.7, "Starting PSN"): the local QP expects the PSN that it announced, and sends from
 * the PSN that the peer announced. Before REP the passive side has announced none; its consumer
 * sets the PSN that REP will announce.
 */
#include "device.hpp"

namespace cm
{
namespace
{

constexpr bool is_before_reply(State state)
{
	return state == State::req_sent || state == State::mra_req_rcvd;
}

constexpr bool is_past(State state)
{
	return !is_connection(state) || state == State::dreq_sent || state == State::dreq_rcvd ||
	       state == State::timewait;
}

} // namespace

kern::Result<> Id::qp_attributes(ib_qp_attr &attr, int &mask) const
{
	if (is_past(state_) || !address_)
		return kern::Error{-EINVAL};
	/*
	 * Before the reply has been sent or received, the attributes for RTR and RTS are not known.
	 */
	if (attr.qp_state != IB_QPS_INIT && is_before_reply(state_))
		return kern::Error{-EINVAL};
	const bool requests = qp_type_ == IB_QPT_RC || qp_type_ == IB_QPT_XRC_INI;
	const bool responds = qp_type_ == IB_QPT_RC || qp_type_ == IB_QPT_XRC_TGT;
	mask = IB_QP_STATE;
	switch (attr.qp_state) {
	case IB_QPS_INIT:
		mask |= IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT;
		attr.qp_access_flags = IB_ACCESS_REMOTE_WRITE;
		if (responder_resources_)
			attr.qp_access_flags |= IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC;
		attr.pkey_index = address_->pkey_index;
		attr.port_num = rdma_ah_get_port_num(&address_->attr);
		return {};
	case IB_QPS_RTR:
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
		attr.ah_attr = address_->attr;
		attr.path_mtu = static_cast<ib_mtu>(path_mtu_);
		attr.dest_qp_num = remote_qpn_;
		attr.rq_psn = local_psn_;
		if (responds) {
			mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
			attr.max_dest_rd_atomic = responder_resources_;
			attr.min_rnr_timer = 0;
		}
		if (alternate())
			add_alternate(attr, mask);
		return {};
	case IB_QPS_RTS:
		if (alternate() && migration_->reloaded) {
			/* The QP is connected already, so only the alternate path is set. */
			mask = IB_QP_PATH_MIG_STATE;
			add_alternate(attr, mask);
			attr.path_mig_state = IB_MIG_REARM;
			return {};
		}
		mask |= IB_QP_SQ_PSN;
		attr.sq_psn = remote_psn_;
		if (requests) {
			mask |= IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
			attr.retry_cnt = retry_count_;
			attr.rnr_retry = rnr_retry_count_;
			attr.max_rd_atomic = initiator_depth_;
		}
		if (requests || responds) {
			mask |= IB_QP_TIMEOUT;
			attr.timeout = qp_timeout_;
		}
		if (alternate()) {
			mask |= IB_QP_PATH_MIG_STATE;
			attr.path_mig_state = IB_MIG_REARM;
		}
		return {};
	default:
		return kern::Error{-EINVAL};
	}
}

void Id::add_alternate(ib_qp_attr &attr, int &mask) const
{
	mask |= IB_QP_ALT_PATH;
	attr.alt_ah_attr = alternate()->attr;
	attr.alt_port_num = rdma_ah_get_port_num(&alternate()->attr);
	attr.alt_pkey_index = alternate()->pkey_index;
	attr.alt_timeout = migration_->loaded_timeout;
}

} // namespace cm
