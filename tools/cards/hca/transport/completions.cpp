// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/completions.hpp"

#include "cards/hca/transport/engine.hpp"

namespace weft::hca::transport
{

namespace
{

/* Increments the counter of a syndrome, for the send or the receive queue. */
void count(Diagnostics &counters, Syndrome syndrome, bool is_send)
{
	switch (syndrome) {
	case Syndrome::local_length:
		++(is_send ? counters.sq_local_length : counters.rq_local_length);
		break;
	case Syndrome::local_qp_operation:
		++(is_send ? counters.sq_local_qp_operation : counters.rq_local_qp_operation);
		break;
	case Syndrome::local_protection:
		++(is_send ? counters.sq_local_protection : counters.rq_local_protection);
		break;
	case Syndrome::flushed:
		++(is_send ? counters.sq_flushed : counters.rq_flushed);
		break;
	case Syndrome::window_bind:
		++counters.sq_window_bind;
		break;
	case Syndrome::bad_response:
		++counters.sq_bad_response;
		break;
	case Syndrome::remote_invalid_request:
		++(is_send ? counters.sq_remote_invalid_request
			   : counters.rq_remote_invalid_request);
		break;
	case Syndrome::local_access:
	case Syndrome::remote_access:
		++(is_send ? counters.sq_remote_access : counters.rq_remote_access);
		break;
	case Syndrome::remote_operation:
		++counters.sq_remote_operation;
		break;
	case Syndrome::retry_exceeded:
		++counters.sq_retries_exceeded;
		break;
	case Syndrome::rnr_retry_exceeded:
		++counters.sq_rnr_retries_exceeded;
		break;
	case Syndrome::none:
		break;
	}
}

} // namespace

void Completions::sent(Qp &qp, const SendRequest &request, std::uint16_t index,
		       std::uint32_t byte_count, std::span<const std::byte> data)
{
	if (request.signalled)
		check(qp, engine_.card().completions.sent(
				  qp.pair, {index, request.opcode, byte_count, data}));
}

void Completions::send_failed(Qp &qp, std::uint16_t index, Syndrome syndrome)
{
	count(engine_.card().diagnostics, syndrome, true);
	check(qp, engine_.card().completions.failed(
			  qp.pair, qp.pair.send_cqn,
			  {.index = index, .syndrome = syndrome, .is_send = true}));
}

void Completions::received(Qp &qp, const ReceiveWork &work, ReceiveDone done)
{
	done.index = work.index;
	done.srqn = work.srqn;
	done.steering = work.steering;
	check(qp, engine_.card().completions.received(qp.pair, work.cqn, done));
}

void Completions::receive_failed(Qp &qp, const ReceiveWork &work, Syndrome syndrome)
{
	count(engine_.card().diagnostics, syndrome, false);
	check(qp, engine_.card().completions.failed(
			  qp.pair, work.cqn,
			  {.index = work.index, .srqn = work.srqn, .syndrome = syndrome}));
}

void Completions::check(Qp &qp, bool written)
{
	if (written || qp.pair.state == QpState::err || qp.broken)
		return;
	qp.broken = true;
	engine_.schedule(qp);
}

} // namespace weft::hca::transport
