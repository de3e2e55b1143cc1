// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Opens and closes a special QP, and implements its agents and the work item that does all of its
 * processing.
 */
#include "special_qp.hpp"

#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/objects.hpp>

namespace mad
{
namespace
{

constexpr int polled_at_once = 16;
/*
 * A CQ that cannot be polled or armed raises no event, so run() is scheduled again after this
 * delay.
 */
constexpr unsigned retry_ms = 100;
/*
 * Interval of check_progress(). A send that is posted for one to two intervals without a completion
 * has stalled. A completion usually takes microseconds; it takes longer only if the link has no
 * credits or the hardware is very slow. In that case, the recovery sends the packets again.
 */
constexpr unsigned progress_ms = 4000;
/*
 * Number of calls of check_progress() that find a stalled send until it counts as stalled although
 * run() has not yet seen all completions in the CQ, because new ones arrive all the time.
 */
constexpr unsigned suspicions_max = 3;
/* Time after which requests that were not flushed are taken back. */
constexpr unsigned flush_ms = 2000;
constexpr u64 ns_per_ms = 1'000'000;
/*
 * Number of MADs that one run passes to their handlers. Other work items can run between two runs.
 */
constexpr int routed_at_once = 16;

/*
 * The work queue is per CPU: a work item that a handler queues, such as the CM's, is run by the
 * same worker, without waking another one. If a handler sleeps for long, the work queue starts
 * another worker.
 */
constinit kern::Static<kern::WorkQueue> work_queue;

} // namespace

kern::Result<> begin_special_qps()
{
	work_queue.construct(
		KERN_TRY(kern::WorkQueue::create("weft-mad", kern::WorkQueue::Kind::per_cpu)));
	return {};
}

void end_special_qps()
{
	work_queue.destruct();
}

SpecialQp::SpecialQp(ib_device *device, u32 port_num, ib_pd *pd, ib_qp_type type)
    : device_(device), port_num_(port_num), pd_(pd), type_(type),
      node_{device->is_switch, static_cast<u8>(port_num), static_cast<u8>(device->phys_port_cnt)},
      lock_(KERN_LOCK_CLASS("mad.qp")),
      send_queue_(pd,
		  [](ib_cq *cq, ib_wc *wc) {
			  static_cast<SpecialQp *>(cq->cq_context)->on_send_done(wc);
		  }),
      recovery_(port_num, type, kern::method<&SpecialQp::retry>, this),
      receive_queue_(
	      pd, receive_queue_depth,
	      [](ib_cq *cq, ib_wc *wc) {
		      static_cast<SpecialQp *>(cq->cq_context)->on_receive_done(wc);
	      },
	      kern::method<&SpecialQp::kick>, this),
      smp_snoop_(device, port_num)
{
}

kern::Result<kern::Owned<SpecialQp>> SpecialQp::create(ib_device *device, u32 port_num, ib_pd *pd,
						       ib_qp_type type)
{
	auto qp = KERN_TRY(
		kern::adopt(new (kern::Gfp::kernel) SpecialQp(device, port_num, pd, type)));
	KERN_TRY(qp->open());
	return qp;
}

kern::Result<> SpecialQp::open()
{
	ib_cq_init_attr queue{};
	queue.cqe = SendQueue::depth + receive_queue_depth;
	queue.comp_vector = port_num_ % static_cast<u32>(device_->num_comp_vectors);
	cq_ = KERN_TRY(rdma::check(ib_create_cq(
		device_, [](ib_cq *, void *self) { static_cast<SpecialQp *>(self)->kick(); },
		nullptr, this, &queue)));

	ib_qp_init_attr init{};
	init.send_cq = cq_;
	init.recv_cq = cq_;
	init.sq_sig_type = IB_SIGNAL_ALL_WR;
	init.cap.max_send_wr = SendQueue::depth;
	init.cap.max_recv_wr = receive_queue_depth;
	init.cap.max_send_sge = 1;
	init.cap.max_recv_sge = 1;
	init.qp_type = type_;
	init.port_num = port_num_;
	qp_ = KERN_TRY(rdma::check(ib_create_qp(pd_, &init)));
	{
		kern::Guard guard(lock_);
		send_queue_.open(qp_);
	}
	receive_queue_.open(qp_);
	recovery_.open(qp_);
	KERN_TRY(recovery_.bring_up());
	KERN_TRY(receive_queue_.fill());
	/* The agent must exist before the first run, which may have to send responses. */
	internal_agent_ = KERN_TRY(kern::make<Agent>(kern::Gfp::kernel, *this, nullptr));
	KERN_TRY(add(*internal_agent_));
	/* From now on only run() uses the receive queue. It arms the CQ after its first poll. */
	kern::Guard guard(lock_);
	step_locked(SpecialQpEvent::done);
	return {};
}

SpecialQp::~SpecialQp()
{
	if (internal_agent_)
		retire(*internal_agent_);
	{
		kern::Guard guard(lock_);
		kern_assert(agents_.empty());
		step_locked(SpecialQpEvent::close);
	}
	/*
	 * A run that has seen the QP in the up state may still post to it or modify it, so wait for
	 * it. Later runs do not touch the QP.
	 */
	work_.cancel();
	progress_work_.cancel();
	recovery_.stop();
	receive_queue_.stop();
	if (qp_)
		KERN_WARN_ON(ib_destroy_qp(qp_));
	{
		kern::Guard guard(lock_);
		step_locked(SpecialQpEvent::done);
	}
	work_.cancel();
	if (cq_)
		ib_process_cq_direct(cq_, -1);
	/* These MADs arrived too late to be routed. */
	while (Receive *receive = received_.pop_front())
		kern::destroy(receive);
	reclaim();
	if (internal_agent_) {
		/* run() reports the sends that have ended now. */
		kick();
		internal_agent_->drain();
	}
	work_.cancel();
	if (cq_)
		ib_destroy_cq(cq_);
	smp_snoop_.stop();
}

void SpecialQp::kick()
{
	/* If there is no CQ, there is nothing to poll. */
	if (cq_)
		work_queue->queue(work_);
}

/*
 * Polls received MADs before handlers run, so that the receive queue is refilled: a burst of MADs,
 * such as a thousand connection requests from one peer, often exceeds the posted buffers. Returns
 * true if there may be more. Errors: those of ib_poll_cq().
 */
kern::Result<bool> SpecialQp::poll()
{
	for (int polled = 0; polled < received_max && received_count_ < received_max;
	     polled += polled_at_once) {
		const int count = ib_process_cq_direct(cq_, polled_at_once);
		if (count < 0) [[unlikely]]
			return kern::Error{count};
		if (count < polled_at_once)
			return false;
	}
	return true;
}

/* Context: work queue; never runs in parallel with itself. */
void SpecialQp::run()
{
	const HandlerContext here;
	SendList ended;

	if (state() == SpecialQpState::closed) {
		{
			kern::Guard guard(lock_);
			ended.splice_back(finished_);
		}
		notify(here, ended);
		return;
	}
	if constexpr (kern::debug)
		running_in_ = kern_context();
	const auto polled = poll();
	bool again = polled.ok() && polled.value();
	judge_progress(again);
	for (int routed = 0; routed < routed_at_once && received_count_ > 0; routed++) {
		received_count_--;
		route(here, kern::Owned<Receive>::adopt(received_.pop_front()));
	}
	again |= received_count_ > 0;

	bool has_local, is_well;
	{
		kern::Guard guard(lock_);
		ended.splice_back(finished_);
		has_local = !local_.empty();
		is_well = state() == SpecialQpState::up && receive_queue_.full();
	}
	notify(here, ended);
	if (has_local) {
		serve_local(here);
		again = true;
	}
	if (!is_well)
		again |= recover();
	if constexpr (kern::debug)
		running_in_ = 0;
	if (again || arm(polled.error()))
		kick();
}

/*
 * Arms the CQ, unless polling has failed. Returns true if there may be completions that raise no
 * event. If the CQ cannot be armed, no event leads back to run(), so it is scheduled after a delay
 * (NOTIFY-02).
 */
bool SpecialQp::arm(int poll_error)
{
	const int armed =
		poll_error ?: ib_req_notify_cq(cq_, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);

	if (armed < 0) [[unlikely]] {
		kern_warning_limited("%s port %u QP%u: its CQ is not armed, trying again: %d\n",
				     device_->name, port_num_, qp_->qp_num, armed);
		retry_work_.queue(retry_ms);
	}
	return armed > 0;
}

void SpecialQp::watch(bool traced)
{
	kern::Guard guard(lock_);
	kern::write_once(traced_, traced);
	kern::write_once(watchers_, traced ? watchers_ + 1 : watchers_ - 1);
}

void SpecialQp::step_locked(SpecialQpEvent event)
{
	const SpecialQpState from = state(), to = recovery_.step(event);

	if (to == from)
		return;
	if (to == SpecialQpState::flushing) {
		flush_end_ = kern::now_ns() + flush_ms * ns_per_ms;
		watching_progress_ = true;
		progress_work_.reschedule(flush_ms);
	}
	/* Posts the waiting packets or completes them with an error, depending on the state. */
	if (!is_recovering(to))
		pump_locked();
	kick();
}

/* Performs the steps that are due. Returns true if run() must handle their results. */
bool SpecialQp::recover()
{
	bool any = false;

	for (;;) {
		SpecialQpState state;
		bool sends_are_back, flush_is_overdue;
		{
			kern::Guard guard(lock_);
			state = this->state();
			sends_are_back = send_queue_.empty();
			flush_is_overdue = kern::now_ns() >= flush_end_;
		}
		if (state == SpecialQpState::up)
			break;
		const bool receives_are_back = receive_queue_.empty();
		if (!Recovery::is_due(state, sends_are_back, receives_are_back, flush_is_overdue))
			return any;
		const bool nothing_posted = sends_are_back && receives_are_back;
		kern::Result<> taken;
		if (state == SpecialQpState::flushing && !nothing_posted)
			taken = reset_and_reclaim();
		if (taken.ok())
			taken = recovery_.take_step(state, nothing_posted);
		kern::Guard guard(lock_);
		step_locked(taken.ok() ? SpecialQpEvent::done : SpecialQpEvent::failed);
		any = true;
	}
	receive_queue_.make_up();
	return any;
}

/* Starts to call check_progress() while requests are posted. */
void SpecialQp::watch_progress_locked()
{
	if (state() >= SpecialQpState::closing)
		return;
	watching_progress_ = true;
	send_queue_.begin_period();
	progress_work_.queue(progress_ms);
}

/*
 * Suspects a send that has not completed since the last call, and ends the wait for a flush. So a
 * send ends within ten seconds after it was cancelled: after at most two intervals the QP is moved
 * to ERR, and flush_ms later it is reset. Context: work queue.
 */
void SpecialQp::check_progress()
{
	kern::Guard guard(lock_);
	const SpecialQpState state = this->state();
	if (state >= SpecialQpState::closing)
		return;
	if (state == SpecialQpState::flushing) {
		/* The timer may expire up to one tick early. */
		if (const u64 now = kern::now_ns(); now < flush_end_) {
			progress_work_.queue(static_cast<unsigned>((flush_end_ - now) / ns_per_ms) +
					     1);
			return;
		}
		kick();
	} else if (send_queue_.is_stalled()) {
		/* Its completion may be in the CQ: run() decides after it has polled the CQ. */
		suspicions_++;
		kick();
	} else {
		send_queue_.begin_period();
	}
	watching_progress_ = !send_queue_.empty();
	if (watching_progress_)
		progress_work_.queue(progress_ms);
}

/*
 * Starts a recovery if a suspected send still has no completion. @more: the CQ may contain more
 * completions than were polled. Context: run().
 */
void SpecialQp::judge_progress(bool more)
{
	bool is_stalled = false;
	{
		kern::Guard guard(lock_);
		if (!suspicions_) [[likely]]
			return;
		if (!send_queue_.is_stalled()) {
			suspicions_ = 0;
		} else if (!more || suspicions_ >= suspicions_max) {
			suspicions_ = 0;
			send_queue_.begin_period();
			const SpecialQpState state = this->state();
			step_locked(SpecialQpEvent::stalled);
			is_stalled = this->state() != state;
		}
	}
	if (is_stalled)
		kern_warning_limited(
			"%s port %u QP%u: a send does not complete, resetting the QP\n",
			device_->name, port_num_, qp_->qp_num);
}

/*
 * Takes back the requests that the hardware does not complete. First processes their completions,
 * if there are any: some devices leave them in the CQ. Errors: those of the verbs; then nothing is
 * taken back. Context: run().
 */
kern::Result<> SpecialQp::reset_and_reclaim()
{
	KERN_TRY(recovery_.reset());
	int count;
	do {
		count = ib_process_cq_direct(cq_, polled_at_once);
		if (count < 0)
			return kern::Error{count};
	} while (count == polled_at_once);
	reclaim();
	return {};
}

/*
 * Ends the packets and frees the receive buffers that are still posted. The QP must have been reset
 * or destroyed, and its completions must have been polled, so that no completion refers to them any
 * more. It is not known whether the packets were sent. Context: process.
 */
void SpecialQp::reclaim()
{
	receive_queue_.close();
	kern::Guard guard(lock_);
	while (Packet *packet = send_queue_.oldest()) {
		Send &send = *packet->send;
		send_queue_.take_back(*packet);
		decide_locked(send, IB_WC_WR_FLUSH_ERR);
		release_locked(send);
	}
}

/* Context: work queue. */
void SpecialQp::retry()
{
	{
		kern::Guard guard(lock_);
		step_locked(SpecialQpEvent::retry);
	}
	kick();
}

kern::Result<> SpecialQp::add(Agent &agent)
{
	kern::Guard guard(lock_);
	if (state() >= SpecialQpState::closing)
		return kern::Error{-EBUSY};
	KERN_TRY(agents_.add(agent));
	agent.device = device_;
	agent.qp = qp_;
	agent.port_num = port_num_;
	if (agent.snoops)
		kern::write_once(watchers_, watchers_ + 1);
	return {};
}

/* Removes the agent from the table, and decides the outcome of its sends. */
void SpecialQp::retire(Agent &agent)
{
	kern::Guard guard(lock_);
	agent.leaving = true;
	if (agent.snoops && agent.node.linked())
		kern::write_once(watchers_, watchers_ - 1);
	agent.node.unlink();
	agent.pending.each([this](Send &send) KERN_REQUIRES(lock_) {
		decide_locked(send, IB_WC_WR_FLUSH_ERR);
	});
	while (Send *send = local_.pop_of(agent))
		decide_locked(*send, IB_WC_WR_FLUSH_ERR);
	agent.reception.clear();
}

void SpecialQp::remove(Agent &agent)
{
	/* A handler that calls this would wait for itself. */
	kern_assert(kern::read_once(running_in_) != kern_context());
	retire(agent);
	kick();
	agent.drain();
}

} // namespace mad
