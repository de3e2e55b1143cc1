// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Polls CQs for their consumers (MGMT-13). A completion event schedules the CQ's poller in the
 * context that the consumer has selected (IB_POLL_SOFTIRQ or a work queue). The poller calls the
 * done function of each completion until the queue is empty or its budget is used up. It arms the
 * queue only after finding it empty, and then checks for completions that arrived in the meantime
 * (NOTIFY-03, NOTIFY-04).
 */
#include <kern/atomic.hpp>
#include <kern/completion.hpp>
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/memory.hpp>
#include <kern/tasklet.hpp>
#include <kern/timer.hpp>
#include <kern/work.hpp>
#include "checks.hpp"
#include "cq.hpp"
#include "device.hpp"

using namespace verbs;

namespace
{

/* Maximum number of completions that one call of the driver returns. */
constexpr int batch = 16;
/* Maximum number for a direct poll, whose array is on the stack. */
constexpr int direct_batch = 8;
/* The poller yields after this number of completions. */
constexpr int softirq_budget = 256;
constexpr int work_budget = 65536;
/*
 * A CQ that cannot be polled or armed raises no event, so its poller is scheduled again after this
 * delay.
 */
constexpr unsigned int retry_ms = 100;

struct Queues {
	kern::WorkQueue bound;
	kern::WorkQueue unbound;
};
constinit kern::Static<Queues> queues;

struct Processed {
	int count;
	int error; /* error of the last ib_poll_cq(), or 0 */
};

Processed process(ib_cq *cq, ib_wc *wcs, int at_once, int budget)
{
	int processed = 0, error = 0;

	while (budget < 0 || processed < budget) {
		const int wanted =
			budget < 0 || budget - processed > at_once ? at_once : budget - processed;
		const int got = ib_poll_cq(cq, wanted, wcs);
		if (got <= 0) {
			error = got;
			break;
		}
		for (int i = 0; i < got; i++) {
			kern_assert(wcs[i].wr_cqe);
			wcs[i].wr_cqe->done(cq, &wcs[i]);
		}
		processed += got;
		if (got != wanted)
			break;
	}
	return {processed, error};
}

} // namespace

struct ib_cq_poller {
	explicit ib_cq_poller(ib_cq *cq) : cq_(cq)
	{
		switch (cq->poll_ctx) {
		case IB_POLL_SOFTIRQ:
			new (&tasklet_)
				kern::Tasklet(kern::method<&ib_cq_poller::run_in_softirq>, this);
			break;
		case IB_POLL_WORKQUEUE:
		case IB_POLL_UNBOUND_WORKQUEUE:
			queue_ = cq->poll_ctx == IB_POLL_WORKQUEUE ? &queues->bound
								   : &queues->unbound;
			new (&work_) kern::Work(kern::method<&ib_cq_poller::run_in_work>, this);
			break;
		case IB_POLL_DIRECT: /* no poller */
			break;
		}
	}
	~ib_cq_poller()
	{
		switch (cq_->poll_ctx) {
		case IB_POLL_SOFTIRQ:
			tasklet_.~Tasklet();
			break;
		case IB_POLL_WORKQUEUE:
		case IB_POLL_UNBOUND_WORKQUEUE:
			work_.~Work();
			break;
		case IB_POLL_DIRECT: /* no poller */
			break;
		}
	}
	ib_cq_poller(const ib_cq_poller &) = delete;
	ib_cq_poller &operator=(const ib_cq_poller &) = delete;

	void stop()
	{
		asked_.fetch_or(to_stop);
		if (cq_->poll_ctx == IB_POLL_SOFTIRQ)
			tasklet_.cancel();
		else
			work_.cancel();
		/*
		 * A run that had not seen to_stop may have started the timer. Such a run has ended
		 * now, so the timer is not started again.
		 */
		retry_timer_.cancel();
	}

	/*
	 * Implements verbs::flush_cq(). A CQ is first in, first out. So when as many completions as
	 * its capacity have been polled, all that are in it now have been processed.
	 */
	void flush()
	{
		if (KERN_WARN_ON(called_by_itself()))
			return;
		kern::Guard one_at_a_time(flush_lock_);
		flushed_.reinit();
		to_take_ = cq_->cqe;
		asked_.fetch_or(to_flush);
		cq_->poll_ctx == IB_POLL_SOFTIRQ ? schedule_softirq(cq_, nullptr)
						 : schedule_work(cq_, nullptr);
		flushed_.wait();
	}

	/* Completion handlers. */
	static void schedule_softirq(ib_cq *cq, void *) { cq->poller->tasklet_.schedule(); }
	static void schedule_work(ib_cq *cq, void *)
	{
		cq->poller->queue_->queue(cq->poller->work_);
	}

private:
	void run_in_softirq()
	{
		if (poll(softirq_budget))
			tasklet_.schedule();
	}
	void run_in_work()
	{
		kern::write_once(polling_, kern_context());
		const bool more = poll(work_budget);
		kern::write_once(polling_, 0ul);
		if (more)
			queue_->queue(work_);
	}
	/*
	 * Returns true if called from a done function of this CQ. For a softirq poller, the caller
	 * is in atomic context only if it is a done function, because flush_cq() may be called in
	 * process context only.
	 */
	bool called_by_itself() const
	{
		return cq_->poll_ctx == IB_POLL_SOFTIRQ
			       ? kern_in_atomic()
			       : kern::read_once(polling_) == kern_context();
	}

	/* Returns true if there may be more completions. */
	bool poll(int budget)
	{
		/* asked_ is read before polling. Later requests are served by the next run. */
		if (const u8 asked = asked_.load_acquire()) [[unlikely]]
			return poll_as_asked(asked, budget);
		return arm_after(process(cq_, wcs_, batch, budget), budget);
	}

	[[gnu::noinline, gnu::cold]] bool poll_as_asked(u8 asked, int budget)
	{
		if (asked & to_stop)
			return false;
		const Processed processed = process(cq_, wcs_, batch, budget);
		advance(processed.count, processed.count < budget);
		return arm_after(processed, budget);
	}

	bool arm_after(Processed processed, int budget)
	{
		if (processed.count >= budget)
			return true;
		const int armed =
			processed.error
				?: ib_req_notify_cq(cq_,
						    IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
		if (armed < 0) [[unlikely]]
			retry_later(armed);
		return armed > 0;
	}

	/* Schedules another run after a delay, because no event will (NOTIFY-02). */
	[[gnu::noinline, gnu::cold]] void retry_later(int error)
	{
		kern_warning_limited("%s: a completion queue is not armed, trying again: %d\n",
				     cq_->device->name, error);
		retry_timer_.start(retry_ms);
	}
	void retry()
	{
		cq_->poll_ctx == IB_POLL_SOFTIRQ ? schedule_softirq(cq_, nullptr)
						 : schedule_work(cq_, nullptr);
	}

	/*
	 * Counts the processed completions for flush(), and completes it when they are enough or
	 * the CQ is empty.
	 */
	void advance(int taken, bool empty)
	{
		to_take_ -= taken;
		if (!empty && to_take_ > 0)
			return;
		asked_.fetch_and(static_cast<u8>(~to_flush));
		flushed_.complete();
	}

	ib_cq *cq_;
	kern::WorkQueue *queue_ = nullptr;
	/*
	 * Requests to the poller other than polling. They are rare, so they share a variable and
	 * one read checks all of them.
	 */
	static constexpr u8 to_stop = 1, to_flush = 2;
	kern::Atomic<u8> asked_{0};
	/*
	 * Serialises flush(), which sets to_flush. to_take_ is the number of completions that
	 * flush() still waits for; it is used by flush() and by the runs that see to_flush.
	 */
	kern::Mutex flush_lock_{KERN_LOCK_CLASS("verbs.flush_cq")};
	kern::Completion flushed_;
	int to_take_ = 0;
	/* The context that runs the poller in a work queue, or 0. */
	unsigned long polling_ = 0;
	kern::Timer retry_timer_{kern::method<&ib_cq_poller::retry>, this};
	union {
		/* NOLINTBEGIN(readability-identifier-naming): private, as their union is. */
		kern::Tasklet tasklet_;
		kern::Work work_;
		/* NOLINTEND(readability-identifier-naming) */
	};
	ib_wc wcs_[batch];
};

/*
 * Returns true if the midlayer polls the CQ. A CQ with IB_POLL_DIRECT is polled by its consumer:
 * its poller is a non-null pointer to which no object belongs, because an object would have to be
 * allocated and cleared.
 */
static bool is_polled_for(const ib_cq &cq)
{
	return cq.poller && cq.poll_ctx != IB_POLL_DIRECT;
}

ib_cq_poller *verbs::construct_poller(void *memory, ib_cq *cq)
{
	return cq->poll_ctx == IB_POLL_DIRECT ? static_cast<ib_cq_poller *>(memory)
					      : new (memory) ib_cq_poller(cq);
}

void verbs::stop_poller(ib_cq &cq)
{
	if (is_polled_for(cq))
		cq.poller->stop();
}

void verbs::flush_cq(ib_cq &cq)
{
	if (is_polled_for(cq))
		cq.poller->flush();
	else if (cq.poller)
		ib_process_cq_direct(&cq, cq.cqe);
}

void verbs::destroy_poller(ib_cq &cq)
{
	if (is_polled_for(cq))
		cq.poller->~ib_cq_poller();
}

kern::Result<> verbs::init_pollers()
{
	auto bound = KERN_TRY(kern::WorkQueue::create("weft-cq", kern::WorkQueue::Kind::per_cpu));
	auto unbound = KERN_TRY(
		kern::WorkQueue::create("weft-cq-unbound", kern::WorkQueue::Kind::unbound));

	queues.construct(std::move(bound), std::move(unbound));
	return {};
}

void verbs::exit_pollers()
{
	queues.destruct();
}

extern "C" {

struct ib_cq *__ib_alloc_cq(struct ib_device *device, void *private_data, int nr_cqe,
			    int comp_vector, enum ib_poll_context poll_ctx, const char *caller)
{
	CqSetup setup = {
		.comp_handler = nullptr,
		.event_handler = nullptr,
		.cq_context = private_data,
		.poll_ctx = poll_ctx,
		.has_poller = true,
		.poller_size = sizeof(ib_cq_poller),
		.udata = nullptr,
	};

	switch (poll_ctx) {
	case IB_POLL_SOFTIRQ:
		setup.comp_handler = ib_cq_poller::schedule_softirq;
		break;
	case IB_POLL_WORKQUEUE:
	case IB_POLL_UNBOUND_WORKQUEUE:
		setup.comp_handler = ib_cq_poller::schedule_work;
		break;
	case IB_POLL_DIRECT:
		setup.poller_size = 0;
		break;
	default:
		return rdma::err_ptr<ib_cq>(-EINVAL);
	}
	if (nr_cqe < 0 || comp_vector < 0)
		return rdma::err_ptr<ib_cq>(-EINVAL);

	const ib_cq_init_attr attr = {
		.cqe = static_cast<unsigned int>(nr_cqe),
		.comp_vector = static_cast<u32>(comp_vector),
		.flags = 0,
	};
	ib_cq *cq = create_cq(*device, attr, setup, caller);
	/* The poller arms the CQ whenever it has found it empty. The first time is here. */
	if (rdma::is_err(cq) || poll_ctx == IB_POLL_DIRECT)
		return cq;
	if (const int error = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP)) {
		ib_free_cq(cq);
		return rdma::err_ptr<ib_cq>(error);
	}
	return cq;
}

struct ib_cq *__ib_alloc_cq_any(struct ib_device *device, void *private_data, int nr_cqe,
				enum ib_poll_context poll_ctx, const char *caller)
{
	const u32 turn = __atomic_fetch_add(&device->verbs->next_vector, 1, __ATOMIC_RELAXED);

	return __ib_alloc_cq(device, private_data, nr_cqe,
			     static_cast<int>(turn % static_cast<u32>(device->num_comp_vectors)),
			     poll_ctx, caller);
}

void ib_free_cq(struct ib_cq *cq)
{
	may_sleep(cq->device, "ib_free_cq");
	if (KERN_WARN_ON(!cq->poller))
		return;
	KERN_WARN_ON(destroy_cq(*cq));
}

int ib_process_cq_direct(struct ib_cq *cq, int budget)
{
	ib_wc wcs[direct_batch];
	const Processed processed = process(cq, wcs, direct_batch, budget);

	return processed.count ?: processed.error;
}
}
