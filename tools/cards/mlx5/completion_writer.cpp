// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/completion_writer.hpp"

#include <cstring>

#include "cards/mellanox_icm/codes.hpp"
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

} // namespace

// Identifies the owner of a completion: by the index that a program has chosen for its queue
// pair or XRC SRQ; or, for the kernel, the shared receive queue that the request came from.
std::uint32_t CompletionWriter::owner_index(const hca::QueuePair &pair, std::uint32_t xrc_srqn,
					    bool is_receive) const
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
	return is_receive && qp.uses_srq ? qp.srqn : 0;
}

bool CompletionWriter::sent(const hca::QueuePair &qp, const SendDone &done)
{
	Cqe cqe{};
	set_opcode(cqe, CqeOpcode::requester);
	Cqe::srqn.set(cqe.bytes, owner_index(qp, 0, false));
	Cqe::byte_count.set(cqe.bytes, done.byte_count);
	Cqe::wqe_opcode.set(cqe.bytes, send_code(done.opcode));
	Cqe::qpn.set(cqe.bytes, qp.qpn);
	Cqe::wqe_counter.set(cqe.bytes, done.index);
	return post(qp.send_cqn, cqe, false, done.data);
}

bool CompletionWriter::received(const hca::QueuePair &qp, std::uint32_t cqn,
				const ReceiveDone &done)
{
	Cqe cqe{};
	set_opcode(cqe, receive_opcode(done.opcode));
	Cqe::srqn.set(cqe.bytes, owner_index(qp, done.srqn, true));
	Cqe::path_bits.set(cqe.bytes, done.path_bits);
	Cqe::source_lid.set(cqe.bytes, done.source_lid);
	Cqe::grh.set(cqe.bytes, done.grh ? Cqe::grh_in_buffer : 0);
	Cqe::sl.set(cqe.bytes, done.sl);
	Cqe::source_qpn.set(cqe.bytes, done.source_qpn);
	if (done.opcode == ReceiveOpcode::send)
		Cqe::pkey.set(cqe.bytes, done.pkey);
	else
		Cqe::immediate.set(cqe.bytes, done.immediate);
	if (qp.steered) {
		Cqe::checksum.set(cqe.bytes, done.steering.sum);
		Cqe::hash.set(cqe.bytes, done.steering.hash);
		Cqe::hash_kind.set(cqe.bytes, done.steering.hash_kind);
	}
	Cqe::l3_ok.set(cqe.bytes, done.checksums.ip_checksum_ok || done.checksums.ipv6);
	Cqe::l4_ok.set(cqe.bytes, done.checksums.l4_checksum_ok());
	Cqe::byte_count.set(cqe.bytes, done.byte_count);
	Cqe::qpn.set(cqe.bytes, qp.qpn);
	Cqe::wqe_counter.set(cqe.bytes, done.index);
	Cqe::solicited.set(cqe.bytes, done.solicited);
	return post(cqn, cqe, done.solicited, done.data);
}

bool CompletionWriter::failed(const hca::QueuePair &qp, std::uint32_t cqn, const Failure &failure)
{
	Cqe cqe{};
	set_opcode(cqe, failure.is_send ? CqeOpcode::requester_error : CqeOpcode::responder_error);
	Cqe::srqn.set(cqe.bytes, owner_index(qp, failure.srqn, !failure.is_send));
	Cqe::syndrome.set(cqe.bytes,
			  static_cast<std::uint32_t>(mellanox_icm::cqe_syndrome(failure.syndrome)));
	Cqe::qpn.set(cqe.bytes, qp.qpn);
	Cqe::wqe_counter.set(cqe.bytes, failure.index);
	return post(cqn, cqe, true, {});
}

// @data: data of the message, which is stored in the fields that only datagrams use, or in the
// first half of the entry's slot.
bool CompletionWriter::post(std::uint32_t cqn, Cqe cqe, bool solicited,
			    std::span<const std::byte> data)
{
	CompletionQueue *const queue = card_.completion_queue(cqn);
	if (!queue)
		return false;
	if (data.empty() || data.size() > Cqe::inline_size) {
		Cqe::format.set(cqe.bytes, data.empty() ? 0 : Cqe::inline_64);
		return queue->post(cqe, solicited, data);
	}
	Cqe::format.set(cqe.bytes, Cqe::inline_32);
	std::memset(cqe.bytes, 0, Cqe::inline_size);
	std::memcpy(cqe.bytes, data.data(), data.size());
	return queue->post(cqe, solicited);
}

bool CompletionWriter::raise(Event event, std::uint32_t qpn)
{
	card_.held_completions.write();
	// The event codes are those of the older cards.
	return card_.events.raise_if_room(static_cast<EventType>(mellanox_icm::event_type(event)),
					  qpn);
}

} // namespace weft::mlx5
