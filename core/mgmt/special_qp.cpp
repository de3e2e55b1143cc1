// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Opening and closing a special QP, its agents, and the work item that does everything for them. */
#include "special_qp.hpp"

#include <kern/time.hpp>

namespace mgmt
{
namespace
{

/* Completions that one run takes; others get their turn between two. */
constexpr int polled_at_once = 16;

/* Its tasks may take long, in handlers and in devices that are asked. */
constinit kern::Static<kern::WorkQueue> work_queue;

} // namespace

kern::Result<> begin_special_qps()
{
	work_queue.construct(TRY(kern::WorkQueue::create("weft-mad", kern::WorkQueue::Kind::unbound)));
	return {};
}

void end_special_qps()
{
	work_queue.destruct();
}

SpecialQp::SpecialQp(ib_device *device, u32 port_num, ib_pd *pd, ib_qp_type type)
    : device_(device), port_num_(port_num), pd_(pd), type_(type),
      node_{device->is_switch, static_cast<u8>(port_num), static_cast<u8>(device->phys_port_cnt)},
      lock_(KERN_LOCK_CLASS("mad.qp")), last_hi_tid_(kern::random_u32()), port_check_(device, port_num)
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
	ib_cq_init_attr queue{};
	queue.cqe = send_queue_depth + receive_queue_depth;
	queue.comp_vector = port_num_ % static_cast<u32>(device_->num_comp_vectors);
	ib_cq *cq = ib_create_cq(
		device_, [](ib_cq *, void *self) { static_cast<SpecialQp *>(self)->kick(); }, nullptr, this, &queue);
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
	TRY(bring_up());
	TRY(fill_receive_queue());
	/* From here on the queue is run()'s, which arms the CQ when it has looked for the first time. */
	kern::Guard guard(lock_);
	step_locked(SpecialQpEvent::done);
	return {};
}

SpecialQp::~SpecialQp()
{
	if (internal_agent_)
		remove(*internal_agent_);
	{
		kern::Guard guard(lock_);
		kern_assert(agents_.empty());
		step_locked(SpecialQpEvent::close);
	}
	retry_work_.cancel();
	if (qp_)
		ib_destroy_qp(qp_);
	{
		kern::Guard guard(lock_);
		step_locked(SpecialQpEvent::done);
	}
	work_.cancel();
	if (cq_) {
		ib_process_cq_direct(cq_, -1);
		ib_destroy_cq(cq_);
	}
	/* What the hardware did not give back, now that there is nothing that it could write by. */
	kern::List<Receive, &Receive::node> left;
	{
		kern::Guard guard(lock_);
		left.splice_back(posted_receives_);
	}
	while (Receive *receive = left.pop_front()) {
		unmap(*receive);
		kern::destroy(receive);
	}
	port_check_.stop();
}

void SpecialQp::kick()
{
	work_queue->queue(work_);
}

/* Context: work queue, once at a time. */
void SpecialQp::run()
{
	const HandlerContext here;

	if (state() == SpecialQpState::closed)
		return;
	if constexpr (kern::debug)
		running_in_ = kern_context();
	bool again = ib_process_cq_direct(cq_, polled_at_once) == polled_at_once;
	while (Receive *receive = received_.pop_front())
		route(here, kern::Owned<Receive>::adopt(receive));

	SendList ended;
	bool has_local, is_well;
	{
		kern::Guard guard(lock_);
		ended.splice_back(finished_);
		has_local = !local_.empty();
		is_well = state() == SpecialQpState::up && posted_receive_count_ == receive_queue_depth;
	}
	tell(here, ended);
	if (has_local) {
		serve_local(here);
		again = true;
	}
	if (!is_well)
		again |= recover();
	if constexpr (kern::debug)
		running_in_ = 0;
	if (again || ib_req_notify_cq(cq_, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		kick();
}

kern::Result<> SpecialQp::add(Agent &agent)
{
	kern::Guard guard(lock_);
	if (state() >= SpecialQpState::closing)
		return kern::Error{-EBUSY};
	for (const Agent &other : agents_)
		if (other.overlaps(agent))
			return kern::Error{-EINVAL};
	/*
	 * The high half of a transaction id finds the agent that a response is for. It begins at random, so that two nodes seldom use the
	 * same; 0 stays the wire's own.
	 */
	do {
		agent.hi_tid = ++last_hi_tid_;
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
	/* From a handler it would wait for itself. */
	kern_assert(kern::read_once(running_in_) != kern_context());
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
	kick();
	agent.drain();
}

} // namespace mgmt
