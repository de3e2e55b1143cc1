// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the send path of a special QP, from posting to completion. Each send completes exactly
 * once.
 */
#include "special_qp.hpp"

#include <kern/atomic.hpp>
#include <kern/time.hpp>

namespace mad
{

/*
 * Transmits a send: the first time, or again because no response has arrived. This function and the
 * following ones are always inlined, although they are long, because every MAD uses them.
 */
[[gnu::always_inline]] inline void SpecialQp::transmit_locked(Send &send)
{
	send.tries++;
	if (send.is_rmpp()) {
		transmit_window_locked(send);
		wait_for_peer_locked(send);
	} else {
		queue_locked(send, send.first());
	}
	pump_locked();
}

[[gnu::always_inline]] inline kern::Result<> SpecialQp::start_locked(Send &send)
{
	Agent &agent = send.agent();

	if (agent.leaving)
		return kern::Error{-ENODEV};
	if (send.agent_node.linked() ||
	    (send.timeout_ms == 0 && send.retries != 0 && !send.is_rmpp()))
		return kern::Error{-EINVAL};

	/* The send has never been posted, or its previous use has completed. */
	kern_assert(send.holds == 0);
	send.tries = 0;
	send.step(SendEvent::posted);
	send.awaits_answer = send.timeout_ms > 0;
	send.vendor_err = 0;
	if (send.is_rmpp())
		send.rmpp = RmppSender{send.rmpp.count()};

	bool local = false;
	if (!send.transit && send.header().cls() == ib::MgmtClass::subn_directed_route) {
		if (type_ != IB_QPT_SMI)
			return kern::Error{-EINVAL};
		const auto decision = smi_outbound(send.first().smp(), node_,
						   static_cast<u8>(send.first().wr.port_num));
		if (decision.action == ib::SmiAction::discard)
			return kern::Error{-EINVAL};
		local = decision.action == ib::SmiAction::local;
		if (!local && !send.ah)
			return kern::Error{-EINVAL};
		send.first().wr.port_num = decision.port;
	}

	if (send.reply) {
		if (unattended_ >= unattended_max)
			return kern::Error{-ENOBUFS};
		unattended_++;
	}
	agent.get();
	if (local) {
		local_.push(send);
		kick();
		return {};
	}
	agent.pending.add(send);
	transmit_locked(send);
	return {};
}

kern::Result<> SpecialQp::post(Send &send)
{
	kern::Guard guard(lock_);
	const auto started = start_locked(send);

	if (!finished_.empty())
		kick();
	return started;
}

void SpecialQp::transmit_window_locked(Send &send)
{
	while (const auto segment = send.rmpp.next()) {
		send.prepare_segment(segment);
		queue_locked(send, send.packet(segment));
		send.rmpp.sent();
	}
}

/*
 * Handles a packet that could not be posted: its send fails, and the following packets are tried.
 */
void SpecialQp::pump_on_locked(SendQueue::Lost lost)
{
	const bool is_open = state() == SpecialQpState::up;

	for (; lost; lost = send_queue_.pump(is_open)) {
		decide_locked(*lost.packet->send, lost.status);
		release_locked(*lost.packet->send);
	}
}

/*
 * Decides the outcome of a send, unless it is decided already. The send completes as soon as
 * nothing holds it.
 */
void SpecialQp::decide_locked(Send &send, ib_wc_status status)
{
	if (send.is_decided())
		return;
	send.step(SendEvent::decided);
	send.status = status;
	send.timer_node.unlink();
	/*
	 * Take an additional hold, so that release_locked() completes the send even if there were
	 * no holds.
	 */
	send.holds = send.holds + 1 - send_queue_.withdraw(send);
	release_locked(send);
}

/*
 * Sends the peer an ABORT for a message (IBA 13.6.2.3). The first packet of the message is reused
 * for it.
 */
void SpecialQp::abort_locked(Send &send, ib::RmppStatus status)
{
	Packet &packet = send.first();
	auto &rmpp = packet.rmpp();
	rmpp.type = ib::RmppHeader::abort;
	rmpp.time_flags =
		ib::RmppHeader::make_time_flags(rmpp.response_time(), ib::RmppHeader::active);
	rmpp.status = status;
	rmpp.segment = 0;
	rmpp.length_or_window = 0;
	queue_locked(send, packet);
	pump_locked();
}

/*
 * Waits for a response. Its timeout starts now if all packets have been sent, otherwise when the
 * last one has. The hardware completes all packets, at the latest when the QP enters the error
 * state or is destroyed (MGMT-09); otherwise the recovery takes them back (MGMT-14). Packets that
 * wait behind them are then sent, or are completed by the recovery.
 */
void SpecialQp::wait_for_peer_locked(Send &send)
{
	if (send.holds != 0) {
		send.timer_node.unlink();
		send.step(SendEvent::queued);
		return;
	}
	Agent &agent = send.agent();
	const u64 now = kern::now_ns();

	send.step(SendEvent::released);
	if (agent.pending.wait(send, now))
		agent.arm_timer_locked(now);
}

void SpecialQp::expire_locked(Agent &agent, u64 now)
{
	while (Send *send = agent.pending.expire(now)) {
		if (send->tries > static_cast<unsigned>(send->retries)) {
			if (send->is_rmpp() && send->rmpp.acknowledged() != send->rmpp.count())
				abort_locked(*send, ib::rmpp_status_too_many_retries);
			decide_locked(*send, IB_WC_RESP_TIMEOUT_ERR);
			continue;
		}
		if (send->is_rmpp() && send->rmpp.acknowledged() != send->rmpp.count())
			send->rmpp.rewind();
		send->step(SendEvent::queued);
		transmit_locked(*send);
	}
}

void SpecialQp::on_agent_timer(Agent &agent)
{
	const u64 now = kern::now_ns();

	kern::Guard guard(lock_);
	expire_locked(agent, now);
	agent.reception.expire(now);
	agent.arm_timer_locked(now);
	if (!finished_.empty())
		kick();
}

/* Ends a packet that the hardware does not use any more. */
[[gnu::always_inline]] inline void SpecialQp::end_packet_locked(Packet &packet, ib_wc_status status,
								u32 vendor_err)
{
	Send &send = *packet.send;

	send_queue_.take_back(packet);
	if (status != IB_WC_SUCCESS) [[unlikely]] {
		/*
		 * The hardware stops the send queue after a failed send (IBA 10.3.1, SQE). Flushed
		 * sends are sent again.
		 */
		step_locked(SpecialQpEvent::send_failed);
		if (status == IB_WC_WR_FLUSH_ERR && !send.is_decided() && is_recovering(state())) {
			send_queue_.add(packet);
			return;
		}
		send.vendor_err = vendor_err;
		decide_locked(send, status);
	} else if (!send.is_rmpp() && !send.awaits_answer && !send.is_decided()) {
		/*
		 * A single datagram without a response has completed: no other packet and no timer
		 * is pending.
		 */
		kern_assert(!send.timer_node.linked());
		send.step(SendEvent::decided);
		send.status = IB_WC_SUCCESS;
	}
	release_locked(send);
}

/*
 * Ends the packets that were posted before @packet, which has completed with @status. Requests of a
 * send queue complete in order, so the completions of these packets are lost. Their status is known
 * unless the QP was flushed: a request that fails stops the send queue, so the requests before
 * another one have succeeded.
 */
void SpecialQp::end_older_packets_locked(const Packet &packet, ib_wc_status status)
{
	for (Packet *lost = send_queue_.oldest(); lost != &packet; lost = send_queue_.oldest())
		end_packet_locked(*lost, status == IB_WC_WR_FLUSH_ERR ? status : IB_WC_SUCCESS, 0);
}

void SpecialQp::on_send_done(ib_wc *wc)
{
	Packet &packet = *static_cast<Packet *>(wc->wr_cqe);

	kern::Guard guard(lock_);
	if (send_queue_.oldest() != &packet) [[unlikely]] {
		/* The driver has reported the completion twice, or out of order. */
		if (KERN_WARN_ON(!SendQueue::is_posted(packet)))
			return;
		end_older_packets_locked(packet, wc->status);
	}
	end_packet_locked(packet, wc->status, wc->vendor_err);
	pump_locked();
}

kern::Result<> SpecialQp::modify(Send &send, u32 timeout_ms)
{
	kern::Guard guard(lock_);

	if (!send.agent_node.linked() || send.is_decided())
		return kern::Error{-EINVAL};
	if (timeout_ms == 0) {
		decide_locked(send, IB_WC_WR_FLUSH_ERR);
		kick();
	} else {
		send.timeout_ms = static_cast<int>(timeout_ms);
		if (send.state == SendState::waiting)
			wait_for_peer_locked(send);
	}
	return {};
}

/* Calls the send handlers of the agents for sends that have ended. */
void SpecialQp::notify(const HandlerContext &here, SendList &ended)
{
	while (Send *send = ended.pop_front()) {
		Agent &agent = send->agent();
		if (send->reply) {
			{
				kern::Guard guard(lock_);
				unattended_--;
			}
			rdma_destroy_ah(send->ah, 0);
			kern::destroy(send);
		} else {
			ib_mad_send_wc wc{};
			wc.send_buf = send;
			wc.status = send->status;
			wc.vendor_err = send->vendor_err;
			if (kern::read_once(watchers_) != 0)
				snoop(here, wc);
			agent.send_handler(&agent, &wc);
		}
		agent.put();
	}
}

void SpecialQp::snoop(const HandlerContext &, ib_mad_send_wc &wc)
{
	if (kern::read_once(traced_)) {
		const kern_trace_mad mad =
			traced(static_cast<Send *>(wc.send_buf)->header(), wc.status, 0);
		kern_trace_mad_sent(device_->name, &mad);
	}
	for (Agent *agent = next_snooper(nullptr); agent; agent = next_snooper(agent))
		if (agent->snoop_handler)
			agent->snoop_handler(agent, wc.send_buf, &wc);
}

void SpecialQp::reply(Agent &agent, const Receive &receive, const ib::Mad &mad)
{
	rdma_ah_attr back;

	if (ib_init_ah_attr_from_wc(device_, port_num_, &receive.completion, &receive.buffer.grh,
				    &back))
		__atomic_fetch_add(&counters_.malformed, 1, __ATOMIC_RELAXED);
	else
		send_unattended(agent, receive, mad, back, nullptr);
}

/*
 * Sends a packet without reporting its completion. @transit: the next hop of another node's SMP;
 * nullptr for a response to the sender of @receive.
 */
void SpecialQp::send_unattended(Agent &agent, const Receive &receive, const ib::Mad &mad,
				const rdma_ah_attr &address, const ib::SmiDecision *transit)
{
	const auto count = [](u64 &counter) { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); };
	auto created = Send::create(agent, transit ? 0 : receive.completion.src_qp,
				    receive.completion.pkey_index, false, IB_MGMT_MAD_HDR,
				    IB_MGMT_MAD_DATA, kern::Gfp::atomic | kern::Gfp::no_warn);
	rdma_ah_attr attr = address;
	ib_ah *ah = created.ok() ? rdma_create_ah(pd_, &attr, 0) : nullptr;
	if (!ah || rdma::is_err(ah)) {
		/* The address comes from a received MAD and may be invalid. */
		count(ah && rdma::ptr_err(ah) == -EINVAL ? counters_.malformed
							 : counters_.no_memory);
		return;
	}
	auto send = created.take();
	__builtin_memcpy(send->first().bytes, &mad, sizeof(mad));
	send->reply = true;
	send->ah = ah;
	send->transit = transit != nullptr;
	/*
	 * A response on a path without hops is sent through the port at which the request arrived.
	 */
	send->first().wr.port_num = transit ? transit->port : receive.completion.port_num;
	const auto posted = post(*send);
	if (posted.ok()) {
		(void)send.release();
		return;
	}
	if (posted.error() == -ENOBUFS)
		count(counters_.no_room);
	rdma_destroy_ah(ah, 0);
}

} // namespace mad
