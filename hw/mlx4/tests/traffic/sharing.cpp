// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Calls data-path methods on one object from several CPUs and in an interrupt at the same time.
#include "sharing.hpp"
#include <kern/irq_work.hpp>
#include <kern/thread.hpp>
#include <kern/time.hpp>

namespace traffic
{

namespace
{

constexpr u32 most_callers = 8;
constexpr u32 depth = 64;
constexpr unsigned int wait_ms = 60'000;

class Shared
{
public:
	~Shared()
	{
		if (qp_)
			(void)ib_destroy_qp(qp_);
		if (cq_)
			ib_destroy_cq(cq_);
		if (pd_)
			ib_dealloc_pd(pd_);
	}

	kern::Result<> open(ib_device *device, u32 callers, u32 each, const Arguments &arguments)
	{
		each_ = each;
		requests_ = callers * each;
		seen_ = KERN_TRY(
			kern::make_array<kern::Atomic<u32>>(kern::Gfp::kernel, 2 * requests_));
		pd_ = KERN_TRY(checked(ib_alloc_pd(device, 0)));
		const ib_cq_init_attr cq_attr{.cqe = 2 * depth, .comp_vector = 0, .flags = 0};
		cq_ = KERN_TRY(checked(ib_create_cq(device, nullptr, nullptr, nullptr, &cq_attr)));
		ib_qp_init_attr init{};
		init.send_cq = init.recv_cq = cq_;
		init.cap = {.max_send_wr = depth,
			    .max_recv_wr = depth,
			    .max_send_sge = 1,
			    .max_recv_sge = 1,
			    .max_inline_data = 0};
		init.sq_sig_type = IB_SIGNAL_ALL_WR;
		init.qp_type = IB_QPT_RC;
		qp_ = KERN_TRY(checked(ib_create_qp(pd_, &init)));
		return connect_qp(qp_, 1, qp_->qp_num, arguments);
	}

	/*
	 * Posts a receive and a send. Returns false while the queues are full. May be called in any
	 * context.
	 */
	bool post(u32 number)
	{
		const ib_recv_wr *bad_receive;
		const ib_send_wr *bad_send;
		ib_recv_wr receive{};
		ib_send_wr send{};
		receive.wr_id = requests_ + number;
		send.wr_id = number;
		send.opcode = IB_WR_SEND;
		// Requests of other callers may lie between the two, as no lock is held.
		if (outstanding_.fetch_add(1) >= depth ||
		    ib_post_recv(qp_, &receive, &bad_receive)) {
			outstanding_.fetch_sub(1);
			return false;
		}
		if (ib_post_send(qp_, &send, &bad_send))
			wrong_.fetch_add(1);
		return true;
	}
	/* Polls all completions, and arms the queue. May be called in any context. */
	void poll()
	{
		do {
			ib_wc wc[4];
			int got;
			while ((got = ib_poll_cq(cq_, 4, wc)) > 0)
				for (int i = 0; i < got; i++)
					take(wc[i]);
		} while (ib_req_notify_cq(
				 cq_, static_cast<ib_cq_notify_flags>(
					      IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS)) > 0);
	}
	bool over() const { return completed_.load_acquire() >= 2 * requests_; }
	u32 each() const { return each_; }
	void report(Answer &answer) const
	{
		u32 once = 0;
		for (u32 i = 0; i < 2 * requests_; i++)
			once += seen_[i].load_relaxed() == 1;
		answer.add("completed=%u wrong=%u", once, wrong_.load_relaxed());
	}

private:
	void take(const ib_wc &wc)
	{
		const bool known = wc.wr_id < 2 * requests_;
		if (known)
			seen_[wc.wr_id].fetch_add(1);
		if (!known || wc.status != IB_WC_SUCCESS)
			wrong_.fetch_add(1);
		if (wc.wr_id < requests_)
			outstanding_.fetch_sub(1);
		completed_.fetch_add(1);
	}

	ib_pd *pd_ = nullptr;
	ib_cq *cq_ = nullptr;
	ib_qp *qp_ = nullptr;
	u32 each_ = 0, requests_ = 0;
	kern::OwnedArray<kern::Atomic<u32>> seen_;
	kern::Atomic<u32> outstanding_{0}, completed_{0}, wrong_{0};
};

/* A task that calls the functions itself, or has an interrupt handler call them. */
class Caller
{
public:
	Caller() = default;
	void begin(Shared &shared, u32 index, bool interrupts)
	{
		shared_ = &shared;
		next_ = index * shared.each();
		end_ = next_ + shared.each();
		interrupts_ = interrupts;
	}
	int run()
	{
		const auto deadline = kern::Deadline::in_ms(wait_ms);
		while (!shared_->over() && !deadline.passed() && !kern::Thread::should_stop()) {
			if (interrupts_) {
				work_.queue();
				work_.wait();
			} else {
				step();
			}
			kern::cond_resched();
		}
		return shared_->over() ? 0 : -ETIMEDOUT;
	}

private:
	void step()
	{
		for (u32 i = 0; i < 4 && next_ < end_ && shared_->post(next_); i++)
			next_++;
		shared_->poll();
	}

	Shared *shared_ = nullptr;
	u32 next_ = 0, end_ = 0;
	bool interrupts_ = false;
	kern::IrqWork work_{kern::method<&Caller::step>, this};
};

} // namespace

kern::Result<> share(ib_device *device, const Arguments &arguments, Answer &answer)
{
	const u32 tasks = static_cast<u32>(arguments.number("tasks", 2));
	const u32 callers = tasks + (arguments.number("interrupt") ? 1 : 0);
	if (callers == 0 || callers > most_callers)
		return kern::Error{-EINVAL};
	auto shared = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Shared));
	KERN_TRY(shared->open(device, callers, static_cast<u32>(arguments.number("count", 1000)),
			      arguments));
	auto ends = KERN_TRY(kern::make_array<Caller>(kern::Gfp::kernel, callers));
	kern::Thread threads[most_callers];
	for (u32 i = 0; i < callers; i++) {
		ends[i].begin(*shared, i, i >= tasks);
		threads[i] = KERN_TRY(
			kern::Thread::create("weft-share", kern::method<&Caller::run>, &ends[i]));
	}
	const auto deadline = kern::Deadline::in_ms(wait_ms);
	while (!shared->over() && !deadline.passed())
		kern::sleep_ms(1);
	for (kern::Thread &thread : threads)
		KERN_TRY_ERRNO(thread.stop());
	shared->report(answer);
	return {};
}

} // namespace traffic
