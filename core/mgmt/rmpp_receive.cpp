// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* RMPP over a special QP: segments in, ACKs out, and what the peer says of the segments that we sent. IBA 13.6. */
#include "special_qp.hpp"

#include "links.hpp"

#include <kern/time.hpp>

namespace mgmt
{
namespace
{

/* Bytes of a class's own header in the payload of each segment: SA repeats its own (IBA 15.2.1.1), vendors their OUI. */
std::uint32_t class_header_bytes(u8 mgmt_class)
{
	return static_cast<std::uint32_t>(ib_get_mad_data_offset(mgmt_class)) -
	       (sizeof(ib::MadHeader) + sizeof(ib::RmppHeader));
}

} // namespace

RmppTransaction::~RmppTransaction()
{
	while (Receive *segment = segments.pop_front())
		kern::destroy(segment);
}

void SpecialQp::take_rmpp(const HandlerContext &here, Agent &agent, kern::Owned<Receive> receive)
{
	const auto &rmpp = receive->rmpp();

	const bool ends = rmpp.type == ib::RmppHeader::stop || rmpp.type == ib::RmppHeader::abort;
	/* The end of a message is not answered: two that refuse each other would never stop. */
	if (rmpp.version != ib::RmppHeader::current_version && !ends) {
		answer_rmpp(agent, *receive, ib::RmppHeader::abort, ib::rmpp_status_unsupported_version, 0, 0);
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

void SpecialQp::take_rmpp_data(const HandlerContext &here, Agent &agent, kern::Owned<Receive> receive)
{
	const auto segment = receive->rmpp().segment.value();
	const auto header_bytes = class_header_bytes(receive->header().mgmt_class);
	RmppReceipt receipt{};
	std::uint32_t last = 0, window = 0;
	kern::Owned<Receive> answered = Receive::create().value_or({});
	kern::Owned<Receive> message;

	if (!answered) {
		__atomic_fetch_add(&counters_.no_memory, 1, __ATOMIC_RELAXED);
		return;
	}
	answered->completion = receive->completion;
	answered->buffer = receive->buffer;
	{
		kern::Guard guard(lock_);
		if (receive->is_response() && segment == 1 && !find_locked(agent, *receive) &&
		    !find_transaction_locked(agent, *receive)) {
			/* Nobody asked. */
			__atomic_fetch_add(&counters_.no_agent, 1, __ATOMIC_RELAXED);
			return;
		}
		RmppTransaction *transaction = find_transaction_locked(agent, *receive);
		if (!transaction)
			transaction = begin_transaction_locked(agent, *receive);
		if (!transaction) {
			__atomic_fetch_add(&counters_.rmpp_discarded, 1, __ATOMIC_RELAXED);
			return;
		}

		receipt = transaction->receiver.on_data(receive->rmpp(), header_bytes);
		if (receipt.keep && agent.rmpp_held >= rmpp_held_max)
			receipt = RmppReceipt::abort(ib::rmpp_status_resources_exhausted);
		if (receipt.aborts()) {
			__atomic_fetch_add(&counters_.rmpp_discarded, 1, __ATOMIC_RELAXED);
			end_transaction_locked(agent, *transaction);
		} else {
			const u64 now = kern::now_ns();
			if (receipt.keep) {
				transaction->segments.push_back(*receive.release());
				transaction->held++;
				agent.rmpp_held++;
			}
			last = transaction->receiver.received();
			window = transaction->receiver.window_last();
			transaction->deadline = now + rmpp_silence_ns;
			if (transaction->receiver.complete() && !transaction->segments.empty()) {
				agent.rmpp_held -= std::exchange(transaction->held, 0);
				message = assemble_locked(*transaction, header_bytes);
				transaction->deadline = now + rmpp_linger_ns;
			}
			agent.arm_timer_locked(now);
		}
	}
	if (receipt.aborts()) {
		answer_rmpp(agent, *answered, ib::RmppHeader::abort, receipt.status, 0, 0);
		return;
	}
	if (receipt.acknowledge)
		answer_rmpp(agent, *answered, ib::RmppHeader::ack, ib::rmpp_status_normal, last, window);
	if (message)
		deliver(here, agent, std::move(message));
}

RmppTransaction *SpecialQp::find_transaction_locked(Agent &agent, const Receive &receive)
{
	for (RmppTransaction &transaction : agent.rmpp_transactions)
		if (transaction.matches(receive))
			return &transaction;
	return nullptr;
}

/* nullptr for a segment that can begin nothing, and where no more fit. */
RmppTransaction *SpecialQp::begin_transaction_locked(Agent &agent, const Receive &receive)
{
	if (agent.leaving || receive.rmpp().segment.value() != 1 || !make_room_locked(agent))
		return nullptr;
	auto created = kern::make<RmppTransaction>(kern::Gfp::atomic | kern::Gfp::no_warn);
	if (!created.ok())
		return nullptr;
	RmppTransaction &transaction = *created.take().release();
	transaction.tid = receive.header().tid;
	transaction.mgmt_class = receive.header().mgmt_class;
	transaction.response = receive.is_response();
	transaction.slid = receive.completion.slid;
	transaction.src_qp = receive.completion.src_qp;
	agent.rmpp_transactions.push_back(transaction);
	return &transaction;
}

/* Room for one more message. One that has been delivered, and waits only for repetitions, gives way; one under assembly does not. */
bool SpecialQp::make_room_locked(Agent &agent)
{
	if (agent.rmpp_transactions.size() < rmpp_transactions_max)
		return true;
	for (RmppTransaction &transaction : agent.rmpp_transactions) {
		if (transaction.receiver.complete()) {
			end_transaction_locked(agent, transaction);
			return true;
		}
	}
	return false;
}

void SpecialQp::end_transaction_locked(Agent &agent, RmppTransaction &transaction)
{
	agent.rmpp_held -= transaction.held;
	transaction.node.unlink();
	kern::destroy(&transaction);
}

/* Makes one received message of the segments: the first stands for all. */
kern::Owned<Receive> SpecialQp::assemble_locked(RmppTransaction &transaction, std::uint32_t header_bytes)
{
	auto message = kern::Owned<Receive>::adopt(transaction.segments.pop_front());
	const auto segments = transaction.receiver.received();

	message->present();
	while (Receive *segment = transaction.segments.pop_front()) {
		segment->recv_buf.grh = &segment->buffer.grh;
		segment->recv_buf.mad = reinterpret_cast<ib_mad *>(&segment->buffer.mad);
		links_push_back(message->rmpp_list, segment->recv_buf.list);
	}
	/* The class's header counts once, the payload of all but the last segment in full. */
	const auto payload = ib::rmpp_mad_data_bytes - header_bytes;
	message->mad_len = static_cast<int>(sizeof(ib::MadHeader) + sizeof(ib::RmppHeader) + header_bytes +
					    (segments - 1) * payload + transaction.receiver.last_length() -
					    header_bytes);
	return message;
}

/* ACK, STOP or ABORT for a message that we send; ABORT also for one that the peer sends. */
void SpecialQp::take_rmpp_answer(Agent &agent, const Receive &receive)
{
	const auto &rmpp = receive.rmpp();
	std::uint8_t status = ib::rmpp_status_normal;
	{
		kern::Guard guard(lock_);
		RmppTransaction *transaction = rmpp.type == ib::RmppHeader::abort ? find_transaction_locked(agent, receive) : nullptr;
		const bool given_up = transaction && !transaction->receiver.complete();
		if (given_up)
			end_transaction_locked(agent, *transaction);
		Send *send = find_locked(agent, receive);
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

/* An RMPP packet back to where a segment came from. */
void SpecialQp::answer_rmpp(Agent &agent, const Receive &receive, ib::RmppHeader::Type type,
			    std::uint8_t status, std::uint32_t segment, std::uint32_t window)
{
	ib::Mad mad{};
	mad.header = receive.header();
	/* The receiver of a response speaks as the one who asked, and the other way round (IBA 13.6.4). */
	mad.header.method ^= ib::mad_response_bit;
	auto &rmpp = *reinterpret_cast<ib::RmppHeader *>(mad.data);
	rmpp.version = ib::RmppHeader::current_version;
	rmpp.type = type;
	rmpp.time_flags = ib::RmppHeader::make_time_flags(ib::RmppHeader::no_response_time,
							  ib::RmppHeader::active);
	rmpp.status = status;
	rmpp.segment = segment;
	rmpp.length_or_window = window;
	/* The class's own header comes back as it came. */
	__builtin_memcpy(mad.data + sizeof(rmpp), receive.buffer.mad.data + sizeof(rmpp),
			 class_header_bytes(mad.header.mgmt_class));
	reply(agent, receive, mad);
}

void SpecialQp::expire_rmpp_locked(Agent &agent, u64 now)
{
	for (RmppTransaction &transaction : agent.rmpp_transactions)
		if (transaction.deadline <= now)
			end_transaction_locked(agent, transaction);
}

} // namespace mgmt
