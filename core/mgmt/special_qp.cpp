// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Opening and closing a special QP, and its agents. */
#include "special_qp.hpp"

namespace mgmt
{

SpecialQp::SpecialQp(ib_device *device, u32 port_num, ib_pd *pd, ib_qp_type type)
    : device_(device), port_num_(port_num), pd_(pd), type_(type),
      node_{device->is_switch, static_cast<u8>(port_num), static_cast<u8>(device->phys_port_cnt)},
      lock_(KERN_LOCK_CLASS("mad.qp")), port_check_(device, port_num)
{
}

kern::Result<kern::Owned<SpecialQp>> SpecialQp::create(ib_device *device, u32 port_num, ib_pd *pd,
						       ib_qp_type type)
{
	auto qp = TRY(kern::adopt(new (kern::Gfp::kernel) SpecialQp(device, port_num, pd, type)));
	TRY(qp->open());
	qp->internal_agent_ = TRY(kern::make<Agent>(kern::Gfp::kernel, *qp, nullptr));
	TRY(qp->add(*qp->internal_agent_));
	return qp;
}

kern::Result<> SpecialQp::open()
{
	ib_cq *cq = ib_alloc_cq_any(device_, this, send_queue_depth + receive_queue_depth,
				    IB_POLL_UNBOUND_WORKQUEUE);
	if (rdma::is_err(cq))
		return kern::Error{rdma::ptr_err(cq)};
	cq_ = cq;

	ib_qp_init_attr init{};
	init.send_cq = cq_;
	init.recv_cq = cq_;
	init.sq_sig_type = IB_SIGNAL_ALL_WR;
	init.cap.max_send_wr = send_queue_depth;
	init.cap.max_recv_wr = receive_queue_depth;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
	init.qp_type = type_;
	init.port_num = port_num_;
	ib_qp *qp = ib_create_qp(pd_, &init);
	if (rdma::is_err(qp))
		return kern::Error{rdma::ptr_err(qp)};
	qp_ = qp;
	return bring_up();
}

kern::Result<> SpecialQp::bring_up()
{
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.pkey_index = 0;
	attr.qkey = type_ == IB_QPT_GSI ? ib::qkey_gsi : 0;
	attr.port_num = port_num_;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_QKEY));
	attr.qp_state = IB_QPS_RTR;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE));
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 0;
	TRY_ERRNO(ib_modify_qp(qp_, &attr, IB_QP_STATE | IB_QP_SQ_PSN));
	return fill_receive_queue();
}

SpecialQp::~SpecialQp()
{
	if (internal_agent_)
		remove(*internal_agent_);
	{
		kern::Guard guard(lock_);
		kern_assert(agents_.empty());
		closing_ = true;
	}
	retry_work_.cancel();
	recover_work_.cancel();
	local_work_.cancel();
	if (qp_) {
		ib_drain_qp(qp_);
		ib_destroy_qp(qp_);
	}
	if (cq_)
		ib_free_cq(cq_);
	port_check_.stop();
}

kern::Result<> SpecialQp::add(Agent &agent)
{
	kern::Guard guard(lock_);
	if (closing_)
		return kern::Error{-EBUSY};
	for (const Agent &other : agents_)
		if (other.overlaps(agent))
			return kern::Error{-EINVAL};
	/* The high half of a transaction id finds the agent that a response is for; 0 stays the wire's own. */
	do {
		agent.hi_tid = ++next_agent_;
	} while (agent.hi_tid == 0);
	agent.device = device_;
	agent.qp = qp_;
	agent.port_num = port_num_;
	agents_.push_back(agent);
	if (agent.snoops)
		kern::write_once(snoopers_, snoopers_ + 1);
	return {};
}

void SpecialQp::remove(Agent &agent)
{
	{
		kern::Guard guard(lock_);
		agent.leaving = true;
		if (agent.snoops && agent.node.linked())
			kern::write_once(snoopers_, snoopers_ - 1);
		agent.node.unlink();
		for (Send &send : agent.outstanding)
			decide_locked(send, IB_WC_WR_FLUSH_ERR);
		for (Send &send : local_) {
			if (send.agent == &agent && send.holds == 0) {
				send.decided = true;
				send.status = IB_WC_WR_FLUSH_ERR;
				send.agent_node.unlink();
				finished_.push_back(send);
			}
		}
		for (RmppTransaction &transaction : agent.rmpp_transactions) {
			transaction.node.unlink();
			kern::destroy(&transaction);
		}
	}
	deliver_finished();
	agent.drain();
}

} // namespace mgmt
