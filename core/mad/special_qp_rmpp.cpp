// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements RMPP on a special QP: received segments, the ACKs for them, and the peer's responses
 * to segments that this side sent (IBA 13.6).
 */
#include "special_qp.hpp"

#include <kern/time.hpp>

namespace mad
{
namespace
{

/*
 * Returns the size of the class's own header in the payload of each segment: the SA header (IBA
 * 15.2.1.1), or the OUI of vendor classes.
 */
std::uint32_t class_header_bytes(u8 mgmt_class)
{
	return static_cast<std::uint32_t>(ib_get_mad_data_offset(mgmt_class)) -
	       (sizeof(ib::MadHeader) + sizeof(ib::RmppHeader));
}

} // namespace

void SpecialQp::take_rmpp(const HandlerContext &here, Agent &agent, kern::Owned<Receive> receive)
{
	const auto &rmpp = receive->rmpp();

	const bool ends = rmpp.type == ib::RmppHeader::stop || rmpp.type == ib::RmppHeader::abort;
	/*
	 * STOP and ABORT are not answered: otherwise two nodes with different versions would
	 * exchange ABORTs forever.
	 */
	if (rmpp.version != ib::RmppHeader::current_version && !ends) {
		answer_rmpp(agent, *receive, ib::RmppHeader::abort,
			    ib::rmpp_status_unsupported_version, 0, 0);
		return;
	}
	switch (rmpp.type) {
	case ib::RmppHeader::data:
		take_rmpp_data(here, agent, std::move(receive));
		return;
	case ib::RmppHeader::ack:
	case ib::RmppHeader::stop:
	case ib::RmppHeader::abort:
		take_rmpp_answer(agent, *receive);
		return;
	default:
		answer_rmpp(agent, *receive, ib::RmppHeader::abort, ib::rmpp_status_bad_type, 0, 0);
		return;
	}
}

void SpecialQp::take_rmpp_data(const HandlerContext &here, Agent &agent,
			       kern::Owned<Receive> receive)
{
	const auto segment = receive->rmpp().segment.value();
	const auto header_bytes = class_header_bytes(receive->header().mgmt_class);
	RmppReception::Taken taken;
	kern::Owned<Receive> answered = Receive::create().value_or({});

	if (!answered) {
		__atomic_fetch_add(&counters_.no_memory, 1, __ATOMIC_RELAXED);
		return;
	}
	answered->completion = receive->completion;
	answered->buffer = receive->buffer;
	{
		kern::Guard guard(lock_);
		if (receive->is_response() && segment == 1 && !agent.pending.find(*receive) &&
		    !agent.reception.knows(*receive)) {
			/*
			 * No request is outstanding for which this segment could be the response.
			 */
			__atomic_fetch_add(&counters_.no_agent, 1, __ATOMIC_RELAXED);
			return;
		}
		const u64 now = kern::now_ns();
		taken = agent.reception.take(receive, header_bytes, !agent.leaving, now);
		if (!taken.discarded && !taken.receipt.aborts())
			agent.arm_timer_locked(now);
	}
	if (taken.discarded || taken.receipt.aborts())
		__atomic_fetch_add(&counters_.rmpp_discarded, 1, __ATOMIC_RELAXED);
	if (taken.discarded)
		return;
	if (taken.receipt.aborts()) {
		answer_rmpp(agent, *answered, ib::RmppHeader::abort, taken.receipt.status, 0, 0);
		return;
	}
	if (taken.receipt.acknowledge)
		answer_rmpp(agent, *answered, ib::RmppHeader::ack, ib::rmpp_status_normal,
			    taken.received, taken.window_last);
	if (taken.message)
		deliver(here, agent, std::move(taken.message));
}

/*
 * Handles an ACK, STOP or ABORT for a message that this side sends, and an ABORT for one that the
 * peer sends.
 */
void SpecialQp::take_rmpp_answer(Agent &agent, const Receive &receive)
{
	const auto &rmpp = receive.rmpp();
	std::uint8_t status = ib::rmpp_status_normal;
	{
		kern::Guard guard(lock_);
		const bool given_up =
			rmpp.type == ib::RmppHeader::abort && agent.reception.give_up(receive);
		Send *send = agent.pending.find(receive);
		if (!send || !send->is_rmpp()) {
			if (given_up)
				return;
			__atomic_fetch_add(&counters_.rmpp_discarded, 1, __ATOMIC_RELAXED);
			return;
		}
		if (rmpp.type != ib::RmppHeader::ack) {
			send->vendor_err = rmpp.status;
			decide_locked(*send, IB_WC_REM_ABORT_ERR);
		} else {
			on_rmpp_ack_locked(*send, rmpp, status);
		}
	}
	if (status != ib::rmpp_status_normal)
		answer_rmpp(agent, receive, ib::RmppHeader::abort, status, 0, 0);
}

void SpecialQp::on_rmpp_ack_locked(Send &send, const ib::RmppHeader &rmpp, std::uint8_t &status)
{
	switch (send.rmpp.on_ack(rmpp.segment.value(), rmpp.length_or_window.value(), status)) {
	case RmppAck::stale:
		return;
	case RmppAck::progress:
		send.tries = 1;
		transmit_window_locked(send);
		wait_for_peer_locked(send);
		pump_locked();
		return;
	case RmppAck::finished:
		send.tries = 1;
		if (send.awaits_answer)
			wait_for_peer_locked(send);
		else
			decide_locked(send, IB_WC_SUCCESS);
		return;
	case RmppAck::violation:
		send.vendor_err = status;
		decide_locked(send, IB_WC_REM_ABORT_ERR);
		return;
	}
}

/* Sends an RMPP packet to the sender of a segment. */
void SpecialQp::answer_rmpp(Agent &agent, const Receive &receive, ib::RmppHeader::Type type,
			    std::uint8_t status, std::uint32_t segment, std::uint32_t window)
{
	ib::Mad mad{};
	mad.header = receive.header();
	/*
	 * The receiver of a response answers with the request's method, and vice versa (IBA
	 * 13.6.4).
	 */
	mad.header.method ^= ib::mad_response_bit;
	auto &rmpp = *reinterpret_cast<ib::RmppHeader *>(mad.data);
	rmpp.version = ib::RmppHeader::current_version;
	rmpp.type = type;
	rmpp.time_flags = ib::RmppHeader::make_time_flags(ib::RmppHeader::no_response_time,
							  ib::RmppHeader::active);
	rmpp.status = status;
	rmpp.segment = segment;
	rmpp.length_or_window = window;
	/* The class's own header is sent back unchanged. */
	__builtin_memcpy(mad.data + sizeof(rmpp), receive.buffer.mad.data + sizeof(rmpp),
			 class_header_bytes(mad.header.mgmt_class));
	reply(agent, receive, mad);
}

} // namespace mad
