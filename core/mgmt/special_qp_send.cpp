// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* The sending half of a special QP: from post to the one completion of every send. */
#include "special_qp.hpp"

#include <kern/atomic.hpp>
#include <kern/log.hpp>
#include <kern/time.hpp>
#include <rdma/dma.hpp>

namespace mgmt
{
namespace
{

constexpr u64 ns_per_ms = 1'000'000;
/* The n-th transmission waits n times the time-out, but no more than this many times. */
constexpr unsigned back_off_limit = 4;

u64 deadline_of(const Send &send, u64 now)
{
	const unsigned factor = send.tries < back_off_limit ? send.tries : back_off_limit;
	return now + static_cast<u64>(send.timeout_ms) * factor * ns_per_ms;
}

} // namespace

kern::Result<> SpecialQp::post(Send &send)
{
	kern::Guard guard(lock_);
	const auto started = start_locked(send);

	if (!finished_.empty())
		kick();
	return started;
}

kern::Result<> SpecialQp::start_locked(Send &send)
{
	Agent &agent = *send.agent;

	if (agent.leaving)
		return kern::Error{-ENODEV};
	if (send.agent_node.linked() || (send.timeout_ms == 0 && send.retries != 0 && !send.is_rmpp()))
		return kern::Error{-EINVAL};

	send.tries = 0;
	send.holds = 0;
	send.queued = 0;
	send.decided = false;
	send.awaits_answer = send.timeout_ms > 0;
	send.vendor_err = 0;
	send.rmpp = RmppSender{send.rmpp.count()};

	if (send.reply && unattended_ >= unattended_max)
		return kern::Error{-ENOBUFS};

	bool local = false;
	if (!send.transit && send.header().cls() == ib::MgmtClass::subn_directed_route) {
		if (type_ != IB_QPT_SMI)
			return kern::Error{-EINVAL};
		const auto decision =
			smi_outbound(send.first().smp(), node_, static_cast<u8>(send.first().wr.port_num));
		if (decision.action == ib::SmiAction::discard)
			return kern::Error{-EINVAL};
		local = decision.action == ib::SmiAction::local;
		if (!local && !send.ah)
			return kern::Error{-EINVAL};
		send.first().wr.port_num = decision.port;
	}

	if (send.reply)
		unattended_++;
	agent.get();
	if (local) {
		local_.push_back(send);
		kick();
		return {};
	}
	agent.outstanding.push_back(send);
	transmit_locked(send);
	return {};
}

/* The first time, and every time that an answer did not come. */
void SpecialQp::transmit_locked(Send &send)
{
	send.tries++;
	if (send.is_rmpp()) {
		transmit_window_locked(send);
		wait_for_peer_locked(send);
	} else {
		queue_locked(send, send.first());
		if (send.awaits_answer)
			wait_for_peer_locked(send);
	}
	pump_locked();
}

void SpecialQp::transmit_window_locked(Send &send)
{
	while (const auto segment = send.rmpp.next()) {
		send.prepare_segment(segment);
		queue_locked(send, send.packet(segment));
		send.rmpp.sent();
	}
}

void SpecialQp::queue_locked(Send &send, Packet &packet)
{
	/* Still on its way from an earlier transmission: that one will do. */
	if (packet.place != Packet::Place::idle)
		return;
	send.holds++;
	put_in_backlog_locked(packet);
}

void SpecialQp::put_in_backlog_locked(Packet &packet)
{
	packet.place = Packet::Place::backlog;
	packet.send->queued++;
	backlog_.push_back(packet);
}

/* Hands packets to the hardware while there is room. */
void SpecialQp::pump_locked()
{
	const SpecialQpState state = this->state();

	if (is_recovering(state))
		return;
	while (posted_send_count_ < send_queue_depth) {
		Packet *packet = backlog_.pop_front();
		if (!packet)
			return;
		packet->place = Packet::Place::posted;
		packet->send->queued--;
		if (state != SpecialQpState::up) [[unlikely]] {
			decide_locked(*packet->send, IB_WC_WR_FLUSH_ERR);
			packet_left_locked(*packet);
			continue;
		}

		packet->done = [](ib_cq *cq, ib_wc *wc) {
			static_cast<SpecialQp *>(cq->cq_context)->on_send_done(wc);
		};
		packet->sge.length = ib::mad_bytes;
		packet->sge.lkey = pd_->local_dma_lkey;
		packet->wr.ah = packet->send->ah;
		packet->wr.wr.wr_cqe = packet;
		packet->wr.wr.sg_list = &packet->sge;
		packet->wr.wr.num_sge = 1;
		packet->wr.wr.opcode = IB_WR_SEND;
		packet->wr.wr.send_flags = IB_SEND_SIGNALED;

		const ib_send_wr *bad;
		if (auto mapped = rdma::map_single(device_, packet->bytes, ib::mad_bytes,
						   kern::dma::Direction::to_device);
		    !mapped.ok()) {
			decide_locked(*packet->send, IB_WC_LOC_PROT_ERR);
		} else {
			packet->sge.addr = mapped.value();
			if (ib_post_send(qp_, &packet->wr.wr, &bad) == 0) {
				posted_send_count_++;
				continue;
			}
			unmap(*packet);
			decide_locked(*packet->send, IB_WC_LOC_QP_OP_ERR);
		}
		packet_left_locked(*packet);
	}
}

void SpecialQp::unmap(const Packet &packet)
{
	rdma::unmap_single(device_, packet.sge.addr, ib::mad_bytes, kern::dma::Direction::to_device);
}

/* A packet is no longer in the backlog or with the hardware. */
void SpecialQp::packet_left_locked(Packet &packet)
{
	packet.place = Packet::Place::idle;
	release_locked(*packet.send);
}

/* Drops one hold; the last one lets a decided send go. */
void SpecialQp::release_locked(Send &send)
{
	kern_assert(send.holds > 0);
	if (--send.holds == 0 && send.decided) {
		send.agent_node.unlink();
		finished_.push_back(send);
	}
}

/* Fixes how a send ends, once; it completes as soon as nothing holds it. */
void SpecialQp::decide_locked(Send &send, ib_wc_status status)
{
	if (send.decided)
		return;
	send.decided = true;
	send.status = status;
	send.timer_node.unlink();
	if (send.queued != 0)
		leave_backlog_locked(send);
	send.holds++;
	release_locked(send);
}

/* All of a send's packets, which are found soon where they are likely: a message may be of very many, and interrupts are off. */
void SpecialQp::leave_backlog_locked(Send &send)
{
	for (std::uint32_t segment = send.rmpp.oldest_in_flight(); send.queued != 0; segment = segment % send.packet_count() + 1) {
		Packet &packet = send.packet(segment);
		if (packet.place != Packet::Place::backlog)
			continue;
		packet.backlog_node.unlink();
		packet.place = Packet::Place::idle;
		send.queued--;
		send.holds--;
	}
}

/* Tells the peer that a message ends here (IBA 13.6.2.3), by its first packet, if that is not on its way still. */
void SpecialQp::abort_locked(Send &send, ib::RmppStatus status)
{
	Packet &packet = send.first();
	if (packet.place != Packet::Place::idle)
		return;
	auto &rmpp = packet.rmpp();
	rmpp.type = ib::RmppHeader::abort;
	rmpp.time_flags = ib::RmppHeader::make_time_flags(rmpp.response_time(), ib::RmppHeader::active);
	rmpp.status = status;
	rmpp.segment = 0;
	rmpp.length_or_window = 0;
	queue_locked(send, packet);
	pump_locked();
}

/* An answer or an ACK is due by now + time-out. */
void SpecialQp::wait_for_peer_locked(Send &send)
{
	constexpr u64 rmpp_ack_timeout_ns = 2'000 * ns_per_ms;
	Agent &agent = *send.agent;
	const u64 now = kern::now_ns();

	send.timer_node.unlink();
	send.deadline = send.timeout_ms > 0 ? deadline_of(send, now) : now + rmpp_ack_timeout_ns;
	Send *later = nullptr;
	for (Send &other : agent.timed.reversed()) {
		if (other.deadline <= send.deadline)
			break;
		later = &other;
	}
	if (later)
		agent.timed.insert_before(*later, send);
	else
		agent.timed.push_back(send);
	if (agent.timed.front() == &send)
		agent.arm_timer_locked(now);
}

void SpecialQp::expire_locked(Agent &agent, u64 now)
{
	while (Send *send = agent.timed.front()) {
		if (send->deadline > now)
			return;
		send->timer_node.unlink();
		if (send->tries > static_cast<unsigned>(send->retries)) {
			if (send->is_rmpp() && send->rmpp.acknowledged() != send->rmpp.count())
				abort_locked(*send, ib::rmpp_status_too_many_retries);
			decide_locked(*send, IB_WC_RESP_TIMEOUT_ERR);
			continue;
		}
		if (send->is_rmpp() && send->rmpp.acknowledged() != send->rmpp.count())
			send->rmpp.rewind();
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

void SpecialQp::on_send_done(ib_wc *wc)
{
	Packet &packet = *static_cast<Packet *>(wc->wr_cqe);
	Send &send = *packet.send;

	unmap(packet);
	kern::Guard guard(lock_);
	posted_send_count_--;
	if (wc->status != IB_WC_SUCCESS) [[unlikely]] {
		/* The hardware stops behind a bad send (IBA 10.3.1, SQE); what it flushes is sent again. */
		step_locked(SpecialQpEvent::send_failed);
		if (wc->status == IB_WC_WR_FLUSH_ERR && !send.decided && is_recovering(state())) {
			put_in_backlog_locked(packet);
			return;
		}
		send.vendor_err = wc->vendor_err;
		decide_locked(send, wc->status);
	} else if (!send.is_rmpp() && !send.awaits_answer) {
		decide_locked(send, IB_WC_SUCCESS);
	}
	packet_left_locked(packet);
	pump_locked();
}

kern::Result<> SpecialQp::modify(Send &send, u32 timeout_ms)
{
	kern::Guard guard(lock_);

	if (!send.agent_node.linked() || send.decided)
		return kern::Error{-EINVAL};
	if (timeout_ms == 0) {
		decide_locked(send, IB_WC_WR_FLUSH_ERR);
		kick();
	} else {
		send.timeout_ms = static_cast<int>(timeout_ms);
		if (send.timer_node.linked())
			wait_for_peer_locked(send);
	}
	return {};
}

/* Tells the consumers of sends that have ended. */
void SpecialQp::tell(const HandlerContext &here, SendList &ended)
{
	while (Send *send = ended.pop_front()) {
		Agent &agent = *send->agent;
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
			snoop(here, wc);
			agent.send_handler(&agent, &wc);
		}
		agent.put();
	}
}

void SpecialQp::snoop(const HandlerContext &, ib_mad_send_wc &wc)
{
	for (Agent *agent = next_snooper(nullptr); agent; agent = next_snooper(agent))
		if (agent->snoop_handler)
			agent->snoop_handler(agent, wc.send_buf, &wc);
}

void SpecialQp::reply(Agent &agent, const Receive &receive, const ib::Mad &mad)
{
	rdma_ah_attr back;

	if (ib_init_ah_attr_from_wc(device_, port_num_, &receive.completion, &receive.buffer.grh, &back))
		__atomic_fetch_add(&counters_.malformed, 1, __ATOMIC_RELAXED);
	else
		send_unattended(agent, receive, mad, back, nullptr);
}

/* What nobody waits for. transit: the next hop of another node's SMP; nullptr: an answer to where `receive` came from. */
void SpecialQp::send_unattended(Agent &agent, const Receive &receive, const ib::Mad &mad, const rdma_ah_attr &address,
				const ib::SmiDecision *transit)
{
	const auto count = [](u64 &counter) { __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED); };
	auto created = Send::create(agent, transit ? 0 : receive.completion.src_qp, receive.completion.pkey_index, false,
				    IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA, kern::Gfp::atomic | kern::Gfp::no_warn);
	rdma_ah_attr attr = address;
	ib_ah *ah = created.ok() ? rdma_create_ah(pd_, &attr, 0) : nullptr;
	if (!ah || rdma::is_err(ah)) {
		/* Not every address that a MAD claims to come from is one. */
		count(ah && rdma::ptr_err(ah) == -EINVAL ? counters_.malformed : counters_.no_memory);
		return;
	}
	auto send = created.take();
	__builtin_memcpy(send->first().bytes, &mad, sizeof(mad));
	send->reply = true;
	send->ah = ah;
	send->transit = transit != nullptr;
	/* Of an answer: where the question came in, for a path without hops. */
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

} // namespace mgmt
