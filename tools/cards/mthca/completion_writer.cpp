// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/completion_writer.hpp"

#include "cards/mthca/card_context.hpp"
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mthca
{

using hw::mthca::Cqe;

namespace
{

std::uint8_t receive_opcode(hca::ReceiveOpcode opcode)
{
	using hw::mthca::ReceiveOpcode;
	switch (opcode) {
	case hca::ReceiveOpcode::send:
	case hca::ReceiveOpcode::send_invalidate:
		break;
	case hca::ReceiveOpcode::send_imm:
		return static_cast<std::uint8_t>(ReceiveOpcode::send_imm);
	case hca::ReceiveOpcode::rdma_write_imm:
		return static_cast<std::uint8_t>(ReceiveOpcode::rdma_write_imm);
	}
	return static_cast<std::uint8_t>(ReceiveOpcode::send);
}

} // namespace

std::uint32_t CompletionWriter::receive_address(const hca::QueuePair &qp, std::uint16_t index) const
{
	if (!qp.uses_srq)
		return own(qp).receive_queue.wqe_address(index);
	const SharedReceiveQueue *const srq = card_.shared_receive_queue(qp.srqn);
	return srq ? srq->wqe_address(index) : 0;
}

bool CompletionWriter::sent(const hca::QueuePair &qp, const SendDone &done)
{
	Cqe cqe{};
	cqe.qpn = qp.qpn;
	cqe.byte_count = done.byte_count;
	cqe.wqe_address = own(qp).send_queue.wqe_address(done.index);
	cqe.opcode = static_cast<std::uint8_t>(wqe_opcode(done.opcode));
	cqe.is_send = Cqe::send_bit;
	return post(qp.send_cqn, cqe, false);
}

bool CompletionWriter::received(const hca::QueuePair &qp, std::uint32_t cqn,
				const ReceiveDone &done)
{
	const bool immediate = done.opcode == hca::ReceiveOpcode::send_imm ||
			       done.opcode == hca::ReceiveOpcode::rdma_write_imm;
	Cqe cqe{};
	cqe.qpn = qp.qpn;
	cqe.remote_qpn = done.source_qpn;
	cqe.set_source(done.sl, done.grh, done.path_bits, done.source_lid);
	// Without immediate data, the field has the P_Key index.
	cqe.immediate = immediate ? done.immediate : done.immediate << 16;
	cqe.byte_count = done.byte_count;
	cqe.wqe_address = receive_address(qp, done.index);
	cqe.opcode = receive_opcode(done.opcode);
	return post(cqn, cqe, done.solicited);
}

bool CompletionWriter::failed(const hca::QueuePair &qp, std::uint32_t cqn, const Failure &failure)
{
	Cqe cqe{};
	cqe.qpn = qp.qpn;
	cqe.set_syndrome(static_cast<std::uint8_t>(cqe_syndrome(failure.syndrome)));
	cqe.wqe_address = failure.is_send ? own(qp).send_queue.wqe_address(failure.index)
					  : receive_address(qp, failure.index);
	cqe.opcode = failure.is_send ? Cqe::send_error : Cqe::receive_error;
	cqe.is_send = failure.is_send ? Cqe::send_bit : std::uint8_t{0};
	return post(cqn, cqe, false);
}

bool CompletionWriter::post(std::uint32_t cqn, const Cqe &cqe, bool solicited)
{
	CompletionQueue *const queue = card_.completion_queue(cqn);
	return queue && !queue->failed() && queue->post(cqe, solicited);
}

bool CompletionWriter::raise(Event event, std::uint32_t qpn)
{
	return card_.events.raise_if_room(event_type(event), qpn);
}

} // namespace weft::mthca
