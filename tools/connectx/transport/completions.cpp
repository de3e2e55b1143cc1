// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/transport/completions.hpp"

#include <bit>

#include "connectx/transport/engine.hpp"

namespace weft::connectx::transport
{

using namespace hw::connectx;

namespace
{

/* The counters that go with a syndrome, for the send and for the receive queue. */
void count(Diagnostics &counters, CqeSyndrome syndrome, bool is_send)
{
	switch (syndrome) {
	case CqeSyndrome::local_length:
		++(is_send ? counters.sq_local_length : counters.rq_local_length);
		break;
	case CqeSyndrome::local_qp_operation:
		++(is_send ? counters.sq_local_qp_operation : counters.rq_local_qp_operation);
		break;
	case CqeSyndrome::local_protection:
		++(is_send ? counters.sq_local_protection : counters.rq_local_protection);
		break;
	case CqeSyndrome::flushed:
		++(is_send ? counters.sq_flushed : counters.rq_flushed);
		break;
	case CqeSyndrome::window_bind:
		++counters.sq_window_bind;
		break;
	case CqeSyndrome::bad_response:
		++counters.sq_bad_response;
		break;
	case CqeSyndrome::remote_invalid_request:
		++(is_send ? counters.sq_remote_invalid_request
			   : counters.rq_remote_invalid_request);
		break;
	case CqeSyndrome::remote_access:
		++(is_send ? counters.sq_remote_access : counters.rq_remote_access);
		break;
	case CqeSyndrome::remote_operation:
		++counters.sq_remote_operation;
		break;
	case CqeSyndrome::retry_exceeded:
		++counters.sq_retries_exceeded;
		break;
	case CqeSyndrome::rnr_retry_exceeded:
		++counters.sq_rnr_retries_exceeded;
		break;
	case CqeSyndrome::none:
	case CqeSyndrome::local_access:
	case CqeSyndrome::remote_aborted:
		break;
	}
}

} // namespace

void Completions::sent(Qp &qp, const SendRequest &request, std::uint16_t index,
		       std::uint32_t byte_count)
{
	if (!request.signalled)
		return;
	Cqe cqe{};
	cqe.qpn_word = qp.pair.qpn;
	cqe.byte_count = byte_count;
	cqe.wqe_index = index;
	cqe.owner_opcode = static_cast<std::uint8_t>(static_cast<std::uint8_t>(request.opcode) |
						     Cqe::send_bit);
	post(qp, qp.pair.send_cqn, cqe, false);
}

void Completions::send_failed(Qp &qp, std::uint16_t index, CqeSyndrome syndrome)
{
	post_error(qp, qp.pair.send_cqn, 0, index, syndrome, true);
}

void Completions::received(Qp &qp, const ReceiveWork &work, const ReceiveReport &report)
{
	Cqe cqe{};
	cqe.qpn_word = qp.pair.qpn;
	cqe.immediate = report.immediate;
	cqe.set_remote(report.grh, report.path_bits,
		       work.srqn != 0 ? work.srqn : report.source_qpn);
	cqe.set_sl(report.sl);
	cqe.source_lid = report.source_lid;
	cqe.status = report.status;
	cqe.checksum_flags = report.checksum_flags;
	cqe.checksum = report.checksum;
	cqe.byte_count = report.byte_count;
	cqe.wqe_index = work.index;
	cqe.owner_opcode = static_cast<std::uint8_t>(report.opcode);
	post(qp, work.cqn, cqe, report.solicited);
}

void Completions::receive_failed(Qp &qp, const ReceiveWork &work, CqeSyndrome syndrome)
{
	post_error(qp, work.cqn, work.srqn, work.index, syndrome, false);
}

void Completions::post_error(Qp &qp, std::uint32_t cqn, std::uint32_t srqn, std::uint16_t index,
			     CqeSyndrome syndrome, bool is_send)
{
	count(engine_.card().diagnostics, syndrome, is_send);
	ErrorCqe error{};
	error.qpn_word = qp.pair.qpn;
	error.wqe_index = index;
	error.syndrome = static_cast<std::uint8_t>(syndrome);
	error.owner_opcode =
		static_cast<std::uint8_t>(cqe_opcode_error | (is_send ? Cqe::send_bit : 0));
	Cqe cqe = std::bit_cast<Cqe>(error);
	// Where a good completion has it: drivers look there in either case.
	if (srqn)
		cqe.set_remote(false, 0, srqn);
	post(qp, cqn, cqe, false);
}

void Completions::post(Qp &qp, std::uint32_t cqn, const Cqe &cqe, bool solicited)
{
	CompletionQueue *queue = engine_.card().completion_queue(cqn);
	if (queue && !queue->failed() && queue->post(cqe, solicited))
		return;
	if (qp.pair.state != QpState::err && !qp.broken) {
		qp.broken = true;
		engine_.schedule(qp);
	}
}

} // namespace weft::connectx::transport
