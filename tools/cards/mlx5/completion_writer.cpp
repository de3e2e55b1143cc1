// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/completion_writer.hpp"

#include "cards/mlx5/card_context.hpp"
#include "cards/mlx5/send_request.hpp"

namespace weft::mlx5
{

using hw::mlx5::Cqe;
using hw::mlx5::CqeOpcode;

namespace
{

void set_opcode(Cqe &cqe, CqeOpcode opcode)
{
	Cqe::opcode.set(cqe.bytes, static_cast<std::uint32_t>(opcode));
}

CqeOpcode receive_opcode(ReceiveOpcode opcode)
{
	switch (opcode) {
	case ReceiveOpcode::send:
		break;
	case ReceiveOpcode::send_imm:
		return CqeOpcode::responder_send_imm;
	case ReceiveOpcode::send_invalidate:
		return CqeOpcode::responder_send_invalidate;
	case ReceiveOpcode::rdma_write_imm:
		return CqeOpcode::responder_write_imm;
	}
	return CqeOpcode::responder_send;
}

std::uint32_t syndrome_code(Syndrome syndrome)
{
	switch (syndrome) {
	case Syndrome::none:
		break;
	case Syndrome::local_length:
		return 0x01;
	case Syndrome::local_qp_operation:
		return 0x02;
	case Syndrome::local_protection:
		return 0x04;
	case Syndrome::flushed:
		return 0x05;
	case Syndrome::window_bind:
		return 0x06;
	case Syndrome::bad_response:
		return 0x10;
	case Syndrome::local_access:
		return 0x11;
	case Syndrome::remote_invalid_request:
		return 0x12;
	case Syndrome::remote_access:
		return 0x13;
	case Syndrome::remote_operation:
		return 0x14;
	case Syndrome::retry_exceeded:
		return 0x15;
	case Syndrome::rnr_retry_exceeded:
		return 0x16;
	}
	return 0;
}

EventType event_type(Event event)
{
	switch (event) {
	case Event::communication_established:
		return EventType::communication_established;
	case Event::sq_drained:
		return EventType::sq_drained;
	case Event::wq_catastrophic:
		break;
	case Event::wq_invalid_request:
		return EventType::wq_invalid_request;
	case Event::wq_access_violation:
		return EventType::wq_access_violation;
	case Event::last_wqe_reached:
		return EventType::srq_last_wqe;
	}
	return EventType::wq_catastrophic;
}

} // namespace

// What tells the consumer whose completion it is: the index that a program has chosen for its queue
// pair or XRC SRQ; or, for the kernel, the shared receive queue.
std::uint32_t CompletionWriter::owner_index(const hca::QueuePair &pair,
					    std::uint32_t xrc_srqn) const
{
	constexpr std::uint32_t none = hw::mlx5::QpContext::no_user_index;
	const auto &qp = static_cast<const QueuePair &>(pair);
	if (xrc_srqn) {
		const SharedReceiveQueue *const srq = card_.shared_receive_queue(xrc_srqn);
		return srq && srq->settings().user_index != none ? srq->settings().user_index
								 : xrc_srqn;
	}
	if (qp.user_index != none)
		return qp.user_index;
	return 0;
}

bool CompletionWriter::sent(const hca::QueuePair &qp, const SendDone &done)
{
	Cqe cqe{};
	set_opcode(cqe, CqeOpcode::requester);
	Cqe::srqn.set(cqe.bytes, owner_index(qp, 0));
	Cqe::byte_count.set(cqe.bytes, done.byte_count);
	Cqe::wqe_opcode.set(cqe.bytes, send_code(done.opcode));
	Cqe::qpn.set(cqe.bytes, qp.qpn);
	Cqe::wqe_counter.set(cqe.bytes, done.index);
	return post(qp.send_cqn, cqe, false);
}

bool CompletionWriter::received(const hca::QueuePair &qp, std::uint32_t cqn,
				const ReceiveDone &done)
{
	Cqe cqe{};
	set_opcode(cqe, receive_opcode(done.opcode));
	std::uint32_t index = owner_index(qp, done.srqn);
	if (index == 0 && qp.uses_srq)
		index = qp.srqn;
	Cqe::srqn.set(cqe.bytes, index);
	Cqe::path_bits.set(cqe.bytes, done.path_bits);
	Cqe::source_lid.set(cqe.bytes, done.source_lid);
	Cqe::grh.set(cqe.bytes, done.grh ? Cqe::grh_in_buffer : 0);
	Cqe::sl.set(cqe.bytes, done.sl);
	Cqe::source_qpn.set(cqe.bytes, done.source_qpn);
	if (done.opcode == ReceiveOpcode::send)
		Cqe::pkey.set(cqe.bytes, done.pkey);
	else
		Cqe::immediate.set(cqe.bytes, done.immediate);
	Cqe::byte_count.set(cqe.bytes, done.byte_count);
	Cqe::qpn.set(cqe.bytes, qp.qpn);
	Cqe::wqe_counter.set(cqe.bytes, done.index);
	Cqe::solicited.set(cqe.bytes, done.solicited);
	return post(cqn, cqe, done.solicited);
}

bool CompletionWriter::failed(const hca::QueuePair &qp, std::uint32_t cqn, const Failure &failure)
{
	Cqe cqe{};
	set_opcode(cqe, failure.is_send ? CqeOpcode::requester_error : CqeOpcode::responder_error);
	std::uint32_t index = owner_index(qp, failure.srqn);
	if (index == 0 && qp.uses_srq && !failure.is_send)
		index = qp.srqn;
	Cqe::srqn.set(cqe.bytes, index);
	Cqe::syndrome.set(cqe.bytes, syndrome_code(failure.syndrome));
	Cqe::qpn.set(cqe.bytes, qp.qpn);
	Cqe::wqe_counter.set(cqe.bytes, failure.index);
	return post(cqn, cqe, true);
}

bool CompletionWriter::post(std::uint32_t cqn, const Cqe &cqe, bool solicited)
{
	CompletionQueue *const queue = card_.completion_queue(cqn);
	return queue && queue->post(cqe, solicited);
}

bool CompletionWriter::raise(Event event, std::uint32_t qpn)
{
	return card_.events.raise_if_room(event_type(event), qpn);
}

} // namespace weft::mlx5
