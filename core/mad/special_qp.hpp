/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Operates QP0 or QP1 of one port, which is the SMI or GSI, with its agents. It keeps the receive
 * queue full, posts queued sends, delivers every MAD to its agent, and recovers the QP after an
 * error.
 *
 * It combines parts that are independent of each other: SendQueue has the outgoing packets,
 * rdma::ReceiveQueue the receive buffers, and AgentTable the agents and their registrations. Each
 * agent's PendingSends has the sends that wait for a response, and its RmppReception the incoming
 * messages. LocalQueue has the SMPs that a node sends to itself, and Recovery has the QP's state.
 *
 * One work item, run(), does everything that may sleep: it polls the CQ, calls all handlers of all
 * agents, and performs every recovery step. So a handler may always sleep, handlers on one special
 * QP never run in parallel, and no completion is processed during a recovery. All other functions
 * can be called in any context: they change lists under the lock and leave the rest to run().
 *
 * The hardware may lose completions, and nothing waits for them without a limit (MGMT-14). A later
 * completion shows that an earlier one is lost. If none comes, check_progress() starts a recovery,
 * which resets the QP. After that, the requests that have no completion belong to this class again.
 */
#pragma once

#include "agent_table.hpp"
#include "local_queue.hpp"
#include "smp_snoop.hpp"
#include "recovery.hpp"
#include "send_queue.hpp"
#include "smi.hpp"

#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/trace.hpp>
#include <kern/work.hpp>
#include <rdma/receive_queue.hpp>

namespace mad
{

constexpr int receive_queue_depth = 512;
/*
 * Maximum number of received MADs that wait for their handlers, in addition to the posted buffers.
 */
constexpr int received_max = 4096;
/*
 * Maximum number of generated responses and forwarded SMPs that wait to be sent. Additional ones
 * are dropped.
 */
constexpr int unattended_max = 512;

class SpecialQp
{
public:
	/*
	 * Brings the QP to RTS and fills its receive queue. Context: process. Errors: ENOMEM, and
	 * those of the verbs.
	 */
	static kern::Result<kern::Owned<SpecialQp>> create(ib_device *device, u32 port_num,
							   ib_pd *pd, ib_qp_type type);
	/*
	 * All agents must have been removed. Waits for no completion: the sends of the MAD layer
	 * end after the QP has been destroyed.
	 */
	~SpecialQp();

	ib_device *device() const { return device_; }
	u32 port_num() const { return port_num_; }
	ib_qp *qp() const { return qp_; }
	ib_qp_type type() const { return type_; }
	ib_pd *pd() const { return pd_; }
	/* Each counter is read separately, without a lock. */
	const ib_mad_counters &counters() const { return counters_; }
	/*
	 * Counts a MAD that its agent rejects because of its sender, like a MAD for which no agent
	 * is registered. Context: any.
	 */
	void count_unwanted() { __atomic_fetch_add(&counters_.no_agent, 1, __ATOMIC_RELAXED); }

	/*
	 * Errors: EINVAL if another agent has registered for one of the same MADs; EBUSY while the
	 * device is being removed.
	 */
	kern::Result<> add(Agent &agent);
	/*
	 * Completes all of the agent's sends with a flush error, within ten seconds even if the
	 * hardware loses their completions (check_progress()). After it returns, none of the
	 * agent's handlers runs. Context: process, not from a handler of any agent of this special
	 * QP.
	 */
	void remove(Agent &agent);

	/*
	 * Context: any. Errors: EINVAL if the send is already outstanding, or the packet breaks a
	 * rule of the SMI.
	 */
	kern::Result<> post(Send &send);
	/*
	 * Sets a new timeout for an outstanding send; 0 cancels the send. Errors: EINVAL if it has
	 * completed.
	 */
	kern::Result<> modify(Send &send, u32 timeout_ms);
	/*
	 * Sends a MAD to the sender of `receive`, on behalf of `agent`. The outcome is not
	 * reported.
	 */
	void reply(Agent &agent, const Receive &receive, const ib::Mad &mad);

	void on_agent_timer(Agent &agent);

private:
	/* The function of the work item. */
	void run();

	/*
	 * Evidence that the code runs in process context without locks, and that no other handler
	 * of this special QP runs. Only run() can create it, and every function that calls a
	 * handler requires it. So calling a handler where MADs are posted or cancelled does not
	 * compile.
	 */
	class HandlerContext
	{
	public:
		HandlerContext(const HandlerContext &) = delete;
		HandlerContext &operator=(const HandlerContext &) = delete;

	private:
		friend void SpecialQp::run();
		HandlerContext() = default;
	};

	SpecialQp(ib_device *device, u32 port_num, ib_pd *pd, ib_qp_type type);
	kern::Result<> open();
	/* Schedules run(). Context: any. */
	void kick();
	void watch(bool traced);

	/* Recovery. */
	SpecialQpState state() const { return recovery_.state(); }
	void step_locked(SpecialQpEvent event) KERN_REQUIRES(lock_);
	bool recover();
	void retry();
	void retire(Agent &agent);
	void watch_progress_locked() KERN_REQUIRES(lock_);
	void check_progress();
	void judge_progress(bool more);
	kern::Result<> reset_and_reclaim();
	void reclaim();
	kern::Result<bool> poll();
	bool arm(int poll_error);

	/* Sending (special_qp_send.cpp). */
	kern::Result<> start_locked(Send &send) KERN_REQUIRES(lock_);
	void transmit_locked(Send &send) KERN_REQUIRES(lock_);
	void transmit_window_locked(Send &send) KERN_REQUIRES(lock_);
	void queue_locked(Send &send, Packet &packet) KERN_REQUIRES(lock_)
	{
		send_queue_.add(packet);
		send.holds++;
	}
	/* While the QP recovers, sends are queued until it has succeeded or failed. */
	void pump_locked() KERN_REQUIRES(lock_)
	{
		if (!send_queue_.is_due() || is_recovering(state()))
			return;
		if (const SendQueue::Lost lost = send_queue_.pump(state() == SpecialQpState::up))
			[[unlikely]]
			pump_on_locked(lost);
		if (!watching_progress_) [[unlikely]]
			watch_progress_locked();
	}
	void pump_on_locked(SendQueue::Lost lost) KERN_REQUIRES(lock_);
	void wait_for_peer_locked(Send &send) KERN_REQUIRES(lock_);
	void decide_locked(Send &send, ib_wc_status status) KERN_REQUIRES(lock_);
	void abort_locked(Send &send, ib::RmppStatus status) KERN_REQUIRES(lock_);
	/*
	 * Drops one hold. When the last hold is dropped, a send with a decided outcome is finished,
	 * and any other send waits for its response. Always inlined because every MAD uses it.
	 */
	[[gnu::always_inline]] void release_locked(Send &send) KERN_REQUIRES(lock_)
	{
		kern_assert(send.holds > 0);
		if (--send.holds != 0)
			return;
		if (!send.is_decided()) [[unlikely]] {
			wait_for_peer_locked(send);
			return;
		}
		send.agent_node.unlink();
		finished_.push_back(send);
	}
	void expire_locked(Agent &agent, u64 now) KERN_REQUIRES(lock_);
	void on_send_done(ib_wc *wc);
	void end_packet_locked(Packet &packet, ib_wc_status status, u32 vendor_err)
		KERN_REQUIRES(lock_);
	void end_older_packets_locked(const Packet &packet, ib_wc_status status)
		KERN_REQUIRES(lock_);
	void notify(const HandlerContext &here, SendList &ended);
	void serve_local(const HandlerContext &here);
	void answer_local(const HandlerContext &here, Send &send);
	void snoop(const HandlerContext &here, ib_mad_send_wc &wc);
	Agent *next_snooper(Agent *after);

	/* Receiving (special_qp_receive.cpp). */
	void on_receive_done(ib_wc *wc);
	void route(const HandlerContext &here, kern::Owned<Receive> receive);
	void snoop(const HandlerContext &here, Receive &receive);
	kern_trace_mad traced(const ib::MadHeader &header, ib_wc_status status, u32 lid) const;
	enum class DeviceAnswer : std::uint8_t { not_handled, consumed, answered };
	DeviceAnswer ask_device(const Receive &receive, const ib_grh *grh, ib::Mad &answer);
	bool offer_to_device(const Receive &receive);
	void pass_on(const Receive &receive, const ib::SmiDecision &decision);
	void send_unattended(Agent &agent, const Receive &receive, const ib::Mad &mad,
			     const rdma_ah_attr &address, const ib::SmiDecision *transit);
	void hand_to_agent(const HandlerContext &here, kern::Owned<Receive> receive);
	void refuse(const Receive &receive);
	void deliver(const HandlerContext &here, Agent &agent, kern::Owned<Receive> receive);

	/* RMPP (special_qp_rmpp.cpp). */
	void take_rmpp(const HandlerContext &here, Agent &agent, kern::Owned<Receive> receive);
	void take_rmpp_data(const HandlerContext &here, Agent &agent, kern::Owned<Receive> receive);
	void take_rmpp_answer(Agent &agent, const Receive &receive);
	void on_rmpp_ack_locked(Send &send, const ib::RmppHeader &rmpp, std::uint8_t &status)
		KERN_REQUIRES(lock_);
	void answer_rmpp(Agent &agent, const Receive &receive, ib::RmppHeader::Type type,
			 std::uint8_t status, std::uint32_t segment, std::uint32_t window);

	ib_device *const device_;
	const u32 port_num_;
	ib_pd *const pd_;
	const ib_qp_type type_;
	const SmiNode node_;
	ib_cq *cq_ = nullptr;
	ib_qp *qp_ = nullptr;

	kern::IrqSpinLock lock_;
	AgentTable agents_ KERN_GUARDED_BY(lock_);
	/*
	 * number of snoop agents, plus 1 if tracefs shows MADs; written with the lock held,
	 * read without it
	 */
	u32 watchers_ = 0;
	bool traced_ = false;
	SendQueue send_queue_ KERN_GUARDED_BY(lock_);
	/* decided, without holds, but not yet reported to the agent */
	SendList finished_ KERN_GUARDED_BY(lock_);
	LocalQueue local_ KERN_GUARDED_BY(lock_);
	int unattended_ KERN_GUARDED_BY(lock_) = 0;
	bool watching_progress_ KERN_GUARDED_BY(lock_) = false; /* progress_work_ is queued */
	/* In state flushing: the time, in ns, after which the flush is overdue. */
	u64 flush_end_ KERN_GUARDED_BY(lock_) = 0;
	/* calls of check_progress() that found a stalled send, since run() last had none */
	unsigned suspicions_ KERN_GUARDED_BY(lock_) = 0;
	/*
	 * Declared before work_, and thus destroyed after it, because work items of the members of
	 * this group queue work_.
	 */
	Recovery recovery_;
	rdma::ReceiveQueue<Receive> receive_queue_; /* used by run() only */
	/* used by run() only: polled MADs that are not yet routed */
	kern::List<Receive, &Receive::node> received_;
	int received_count_ = 0; /* length of received_; used by run() only */
	/* the context of run(), in builds with checks */
	unsigned long running_in_ = 0;
	ib_mad_counters counters_{};
	SmpSnoop smp_snoop_;
	kern::Owned<Agent> internal_agent_; /* sends the replies of the MAD layer */

	kern::Work work_{kern::method<&SpecialQp::run>, this};
	/* Declared after work_, and thus destroyed before it, because it queues work_. */
	kern::DelayedWork retry_work_{kern::method<&SpecialQp::kick>, this};
	kern::DelayedWork progress_work_{kern::method<&SpecialQp::check_progress>, this};
	/* Declared last, because it may call watch() immediately. */
	kern::TraceListener trace_{KERN_TRACE_MAD, kern::method<&SpecialQp::watch>, this};
};

/* The work queue of all special QPs. Context: module init and exit. */
kern::Result<> begin_special_qps();
void end_special_qps();

} // namespace mad
