// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements completion queues of the software device. Arming a CQ that already holds completions
// works differently on different hardware (NOTIFY-06); all variants are implemented.
#include "device.hpp"

namespace soft
{

CqState::CqState(ib_cq *cq, u32 vector, Ring<ib_wc> &&ring)
    : cq_(cq), vector_(vector), context_(of(cq->device).options.context),
      notify_(of(cq->device).options.notify), ring_(std::move(ring))
{
}

CqState::~CqState()
{
	/*
	 * The QPs of this CQ have been destroyed, so no more events are raised. Wait for those that
	 * were raised.
	 */
	irq_work_.wait();
	tasklet_.cancel();
	work_.cancel();
	overrun_work_.cancel();
}

/*
 * Raises a completion event. The handler runs once for each event, never concurrently (LOCK-06),
 * and not within this function (LOCK-05), except with SOFT_INLINE.
 */
void CqState::raise()
{
	event_count_.add_relaxed(1);
	of(cq_->device).interrupts[vector_].add_relaxed(1);
	if (context_ == SOFT_INLINE) {
		rdma::complete(cq_);
		return;
	}
	if (due_.fetch_add(1) > 0)
		return;
	switch (context_) {
	case SOFT_HARD_INTERRUPT:
		irq_work_.queue();
		break;
	case SOFT_SOFT_INTERRUPT:
		tasklet_.schedule();
		break;
	default:
		work_.queue();
		break;
	}
}

void CqState::handle()
{
	do {
		rdma::complete(cq_);
	} while (due_.fetch_sub(1) > 1);
}

bool CqState::push(const ib_wc &wc, bool solicited)
{
	bool fires;
	{
		kern::Guard guard(lock_);
		if (overrun_)
			return false;
		if (ring_.full()) {
			overrun_ = true;
			fires = false;
		} else {
			ring_.push() = wc;
			solicited = solicited || wc.status != IB_WC_SUCCESS;
			if (solicited)
				solicited_ = ring_.count();
			fires = armed_ == IB_CQ_NEXT_COMP ||
				(armed_ == IB_CQ_SOLICITED && solicited);
			if (armed_ == 0 && of(cq_->device).completes_late.load_relaxed())
				hidden_++;
			if (fires)
				disarm();
		}
	}
	if (overrun_) {
		/*
		 * Dispatch the event from a task: the caller may be a method that flushes a QP
		 * (LOCK-05).
		 */
		overrun_work_.queue();
		return false;
	}
	if (fires)
		raise();
	return true;
}

void CqState::dispatch_overrun()
{
	rdma::dispatch(IB_EVENT_CQ_ERR, cq_);
}

void CqState::disarm()
{
	armed_ = 0;
	notified_ = ring_.count();
}

size_t CqState::visible()
{
	if (!of(cq_->device).completes_late.load_relaxed())
		hidden_ = 0;
	return ring_.count() - hidden_;
}

int CqState::poll(int count, ib_wc *wcs)
{
	int polled = 0;

	kern::Guard guard(lock_);
	for (; polled < count && visible() > 0; polled++) {
		wcs[polled] = ring_.front();
		ring_.pop();
	}
	for (size_t *mark : {&solicited_, &notified_})
		*mark -= *mark < static_cast<size_t>(polled) ? *mark : static_cast<size_t>(polled);
	return polled;
}

int CqState::detach_qp(ib_qp &qp)
{
	int left = 0;

	kern::Guard guard(lock_);
	hidden_ = 0;
	for (size_t i = 0; i < ring_.count(); i++) {
		if (ring_.at(i).qp != &qp)
			continue;
		ring_.at(i).qp = rdma::remaining_qp(*cq_, qp);
		left++;
	}
	return left;
}

int CqState::arm(ib_cq_notify_flags flags)
{
	const int kind = flags & IB_CQ_SOLICITED_MASK;
	const bool report_missed = flags & IB_CQ_REPORT_MISSED_EVENTS;
	bool fires = false, missed = false;

	if (!rdma::valid_notify_flags(flags))
		return -EINVAL;
	{
		kern::Guard guard(lock_);
		if (failing_arms_ > 0) {
			failing_arms_--;
			return arm_error_;
		}
		/* The completions that soft_complete_late() has hidden become visible now. */
		hidden_ = 0;
		/*
		 * NEXT_COMP replaces an earlier SOLICITED request, but not the other way round
		 * (NOTIFY-07).
		 */
		if (armed_ != IB_CQ_NEXT_COMP)
			armed_ = kind;
		const auto waiting = [this](size_t behind = 0) {
			return armed_ == IB_CQ_NEXT_COMP ? ring_.count() > behind
							 : solicited_ > behind;
		};
		switch (notify_) {
		case SOFT_NOTIFY_FIRES:
			/*
			 * The hardware raises the event by itself, so the driver need not report
			 * missed completions.
			 */
			fires = waiting();
			if (fires)
				disarm();
			break;
		case SOFT_NOTIFY_REPORTS:
			if (report_missed) {
				missed_event_checks_.add_relaxed(1);
				missed = waiting();
			}
			break;
		case SOFT_NOTIFY_FIRES_ONCE:
			if (report_missed) {
				missed_event_checks_.add_relaxed(1);
				missed = notified_ > 0;
			}
			fires = waiting(notified_);
			if (fires)
				disarm();
			break;
		case SOFT_NOTIFY_FORGETS:
			break;
		}
	}
	if (fires)
		raise();
	return missed ? 1 : 0;
}

void CqState::fail_arms(unsigned int count, int error)
{
	kern::Guard guard(lock_);
	failing_arms_ = count;
	arm_error_ = error;
}

int CqState::peek(int limit)
{
	kern::Guard guard(lock_);
	const size_t count = visible();
	return count < static_cast<size_t>(limit) ? static_cast<int>(count) : limit;
}

void CqState::purge(const ib_qp &qp)
{
	kern::Guard guard(lock_);
	hidden_ = 0;
	size_t kept_solicited = 0, kept_notified = 0;
	const size_t count = ring_.count(), solicited = solicited_, notified = notified_;

	for (size_t i = 0; i < count; i++) {
		const ib_wc wc = ring_.front();
		ring_.pop();
		if (wc.qp == &qp)
			continue;
		ring_.push() = wc;
		if (i < solicited)
			kept_solicited = ring_.count() - (count - i - 1);
		if (i < notified)
			kept_notified = ring_.count() - (count - i - 1);
	}
	solicited_ = kept_solicited;
	notified_ = kept_notified;
}

int CqState::resize(int cqe)
{
	auto fresh = Ring<ib_wc>::create(static_cast<size_t>(cqe));

	if (!fresh)
		return fresh.error();
	Ring<ib_wc> ring = fresh.take();
	kern::Guard guard(lock_);
	if (ring_.count() > ring.size())
		return -EINVAL;
	for (; !ring_.empty(); ring_.pop())
		ring.push() = ring_.front();
	std::swap(ring_, ring);
	cq_->cqe = cqe;
	return 0;
}

namespace
{

int create_cq(ib_cq *cq, const ib_cq_init_attr *attr, ib_udata *)
{
	if (int error = of(cq->device).fault(SOFT_CREATE_CQ))
		return error;
	auto ring = Ring<ib_wc>::create(attr->cqe);
	if (!ring)
		return ring.error();
	Cq::construct(cq, cq, attr->comp_vector, ring.take());
	cq->cqe = static_cast<int>(attr->cqe);
	return 0;
}

int destroy_cq(ib_cq *cq, ib_udata *)
{
	Cq::destruct(cq);
	return 0;
}

int resize_cq(ib_cq *cq, int cqe, ib_udata *)
{
	if (int error = of(cq->device).fault(SOFT_RESIZE_CQ))
		return error;
	return Cq::state(cq).resize(cqe);
}

/* Moderation has no effect: every event is raised at once. */
int modify_cq(ib_cq *cq, u16, u16)
{
	return of(cq->device).fault(SOFT_MODIFY_CQ);
}

int poll_cq(ib_cq *cq, int count, ib_wc *wcs)
{
	if (int error = of(cq->device).fault(SOFT_POLL_CQ))
		return error;
	return Cq::state(cq).poll(count, wcs);
}

int req_notify_cq(ib_cq *cq, ib_cq_notify_flags flags)
{
	if (int error = of(cq->device).fault(SOFT_REQ_NOTIFY_CQ))
		return error;
	return Cq::state(cq).arm(flags);
}

int peek_cq(ib_cq *cq, int limit)
{
	if (int error = of(cq->device).fault(SOFT_PEEK_CQ))
		return error;
	return Cq::state(cq).peek(limit);
}

} // namespace

void set_queue_methods(ib_device_ops &ops)
{
	ops.create_cq = create_cq;
	ops.destroy_cq = destroy_cq;
	ops.resize_cq = resize_cq;
	ops.modify_cq = modify_cq;
	ops.poll_cq = poll_cq;
	ops.req_notify_cq = req_notify_cq;
	ops.peek_cq = peek_cq;
	ops.size_ib_cq = sizeof(Cq);
}

} // namespace soft

extern "C" {

bool soft_complete(struct ib_cq *cq, const struct ib_wc *wc, bool solicited)
{
	return soft::Cq::state(cq).push(*wc, solicited);
}

void soft_fail_arms(struct ib_cq *cq, unsigned int count, int error)
{
	soft::Cq::state(cq).fail_arms(count, error);
}

unsigned long soft_missed_event_checks(struct ib_cq *cq)
{
	return soft::Cq::state(cq).missed_event_checks();
}

unsigned long soft_events(struct ib_cq *cq)
{
	return soft::Cq::state(cq).events();
}
}
