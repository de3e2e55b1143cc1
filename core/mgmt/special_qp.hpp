/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * QP0 or QP1 of one port: the SMI or GSI, with the agents on it. It keeps the receive queue full, feeds the send queue, brings every MAD
 * to the one who is due it, and brings the QP back after an error.
 */
#pragma once

#include "agent.hpp"
#include "port_check.hpp"
#include "smi.hpp"

#include <kern/lock.hpp>
#include <kern/work.hpp>

namespace mgmt
{

constexpr int send_queue_depth = 128;
constexpr int receive_queue_depth = 512;
/* Answers of the suite's own, and SMPs in transit, that wait to be sent: what comes in faster than it goes out is dropped. */
constexpr int unattended_max = 512;

class SpecialQp
{
public:
	/* Brings the QP to RTS and fills its receive queue. Context: process. Errors: ENOMEM, and those of the verbs. */
	static kern::Result<kern::Owned<SpecialQp>> create(ib_device *device, u32 port_num, ib_pd *pd,
							   ib_qp_type type);
	/* All agents must be gone. */
	~SpecialQp();

	ib_device *device() const { return device_; }
	u32 port_num() const { return port_num_; }
	ib_qp *qp() const { return qp_; }
	ib_qp_type type() const { return type_; }
	ib_pd *pd() const { return pd_; }
	/* Read without a lock, each by itself. */
	const ib_mad_counters &counters() const { return counters_; }

	/* Errors: EINVAL if another agent has claimed one of the MADs it wants; EBUSY while the device goes away. */
	kern::Result<> add(Agent &agent);
	/* Completes all of the agent's sends with a flush error; when it returns, no handler of it runs or will run.
	 * Context: process, not from one of its handlers. */
	void remove(Agent &agent);

	/* Context: any. Errors: EINVAL for a send that is out already or a packet that breaks a rule of the SMI. */
	kern::Result<> post(Send &send);
	/* A new time-out for a send that is out; 0 cancels it. Errors: EINVAL if it has completed. */
	kern::Result<> modify(Send &send, u32 timeout_ms);
	/* Sends a MAD back to where `receive` came from, on behalf of `agent`; nobody is told how it went. */
	void reply(Agent &agent, const Receive &receive, const ib::Mad &mad);

	void on_agent_timer(Agent &agent);

private:
	SpecialQp(ib_device *device, u32 port_num, ib_pd *pd, ib_qp_type type);
	kern::Result<> open();
	/* From RESET to RTS, with a full receive queue. */
	kern::Result<> bring_up();
	kern::Result<> fill_receive_queue();

	/* Sending (special_qp_send.cpp). */
	kern::Result<> start_locked(Send &send) REQUIRES(lock_);
	void transmit_locked(Send &send) REQUIRES(lock_);
	void transmit_window_locked(Send &send) REQUIRES(lock_);
	void queue_locked(Send &send, Packet &packet) REQUIRES(lock_);
	void pump_locked() REQUIRES(lock_);
	void wait_for_peer_locked(Send &send) REQUIRES(lock_);
	void decide_locked(Send &send, ib_wc_status status) REQUIRES(lock_);
	void abort_locked(Send &send, ib::RmppStatus status) REQUIRES(lock_);
	void release_locked(Send &send) REQUIRES(lock_);
	void unmap(const Packet &packet);
	void packet_left_locked(Packet &packet) REQUIRES(lock_);
	void expire_locked(Agent &agent, u64 now) REQUIRES(lock_);
	Send *find_locked(Agent &agent, const Receive &receive) REQUIRES(lock_);
	void deliver_finished();
	void on_send_done(ib_wc *wc);
	void recover_when_empty_locked() REQUIRES(lock_);
	void recover();
	int resume();
	int fail();
	int restart();
	void retry();
	void retry_later_locked() REQUIRES(lock_);
	void serve_local();
	void answer_local(Send &send);
	void snoop(ib_mad_send_wc &wc);
	Agent *next_snooper(Agent *after);

	/* Receiving (special_qp_receive.cpp). */
	kern::Result<> post_receive(kern::Owned<Receive> &receive);
	void repost(kern::Owned<Receive> receive);
	void unmap(const Receive &receive);
	void on_receive_done(ib_wc *wc);
	void on_receive_flushed();
	void route(kern::Owned<Receive> receive);
	void snoop(Receive &receive);
	enum class DeviceAnswer : std::uint8_t { not_mine, consumed, answered };
	DeviceAnswer ask_device(const Receive &receive, const ib_grh *grh, ib::Mad &answer);
	bool offer_to_device(const Receive &receive);
	void pass_on(const Receive &receive, const ib::SmiDecision &decision);
	void send_unattended(Agent &agent, const Receive &receive, const ib::Mad &mad, const rdma_ah_attr &address,
			     const ib::SmiDecision *transit);
	void hand_to_agent(kern::Owned<Receive> receive);
	void refuse(const Receive &receive);
	Agent *find_agent_locked(const Receive &receive) REQUIRES(lock_);
	void deliver(Agent &agent, kern::Owned<Receive> receive);

	/* RMPP (rmpp_receive.cpp). */
	void take_rmpp(Agent &agent, kern::Owned<Receive> receive);
	void take_rmpp_data(Agent &agent, kern::Owned<Receive> receive);
	void take_rmpp_answer(Agent &agent, const Receive &receive);
	void on_rmpp_ack_locked(Send &send, const ib::RmppHeader &rmpp, std::uint8_t &status) REQUIRES(lock_);
	RmppTransaction *find_transaction_locked(Agent &agent, const Receive &receive) REQUIRES(lock_);
	RmppTransaction *begin_transaction_locked(Agent &agent, const Receive &receive) REQUIRES(lock_);
	bool make_room_locked(Agent &agent) REQUIRES(lock_);
	void end_transaction_locked(Agent &agent, RmppTransaction &transaction) REQUIRES(lock_);
	kern::Owned<Receive> assemble_locked(RmppTransaction &transaction, std::uint32_t header_bytes)
		REQUIRES(lock_);
	void answer_rmpp(Agent &agent, const Receive &receive, ib::RmppHeader::Type type,
			 std::uint8_t status, std::uint32_t segment, std::uint32_t window);
	void expire_rmpp_locked(Agent &agent, u64 now) REQUIRES(lock_);

	ib_device *const device_;
	const u32 port_num_;
	ib_pd *const pd_;
	const ib_qp_type type_;
	const SmiNode node_;
	ib_cq *cq_ = nullptr;
	ib_qp *qp_ = nullptr;

	kern::IrqSpinLock lock_;
	kern::List<Agent, &Agent::node> agents_ GUARDED_BY(lock_);
	u32 snoopers_ = 0; /* among them; written under the lock, read by anyone */
	kern::List<Packet, &Packet::backlog_node> backlog_ GUARDED_BY(lock_);
	SendList finished_ GUARDED_BY(lock_); /* decided and let go, not yet told */
	SendList local_ GUARDED_BY(lock_);    /* for this node's own agents */
	int posted_sends_ GUARDED_BY(lock_) = 0;
	int posted_receives_ GUARDED_BY(lock_) = 0;
	int unattended_ GUARDED_BY(lock_) = 0;
	bool closing_ GUARDED_BY(lock_) = false;
	bool stopped_ GUARDED_BY(lock_) = false; /* the send queue is in error, recover() is due */
	bool flushed_ GUARDED_BY(lock_) = false; /* so is the whole QP */
	bool broken_ GUARDED_BY(lock_) = false;	 /* recover() failed: sends end at once, retry() is due */
	unsigned int retry_ms_ GUARDED_BY(lock_) = 0; /* what the last retry waited; 0: none since all was well */
	u32 next_agent_ GUARDED_BY(lock_) = 0;
	ib_mad_counters counters_{};
	PortCheck port_check_;
	kern::Owned<Agent> internal_agent_; /* sends what the suite itself answers */

	kern::Work recover_work_{kern::method<&SpecialQp::recover>, this};
	kern::DelayedWork retry_work_{kern::method<&SpecialQp::retry>, this};
	kern::Work local_work_{kern::method<&SpecialQp::serve_local>, this};
};

} // namespace mgmt
