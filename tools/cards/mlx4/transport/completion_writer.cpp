// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/transport/completion_writer.hpp"

#include <bit>

#include "cards/mlx4/card_context.hpp"
#include "cards/mellanox_icm/codes.hpp"

namespace weft::mlx4::transport
{

using hw::mlx4::Cqe;
using hw::mlx4::CqeReceiveOpcode;
using hw::mlx4::ErrorCqe;

namespace
{

CqeReceiveOpcode receive_opcode(ReceiveOpcode opcode)
{
	switch (opcode) {
	case ReceiveOpcode::send:
		break;
	case ReceiveOpcode::send_imm:
		return CqeReceiveOpcode::send_imm;
	case ReceiveOpcode::send_invalidate:
		return CqeReceiveOpcode::send_invalidate;
	case ReceiveOpcode::rdma_write_imm:
		return CqeReceiveOpcode::rdma_write_imm;
	}
	return CqeReceiveOpcode::send;
}

std::uint16_t checksum_status(const ChecksumStatus &checksums)
{
	const auto bit = [](bool found, unsigned value) { return found ? value : 0u; };
	const unsigned status =
		bit(checksums.ipv4, Cqe::ipv4) | bit(checksums.ipv4_fragment, Cqe::ipv4_fragment) |
		bit(checksums.ipv4_options, Cqe::ipv4_options) | bit(checksums.ipv6, Cqe::ipv6) |
		bit(checksums.ip_checksum_ok, Cqe::ip_checksum_ok) | bit(checksums.tcp, Cqe::tcp) |
		bit(checksums.udp, Cqe::udp);
	return static_cast<std::uint16_t>(status);
}

} // namespace

bool CompletionWriter::sent(const hca::QueuePair &qp, const SendDone &done)
{
	Cqe cqe{};
	cqe.qpn_word = qp.qpn;
	cqe.byte_count = done.byte_count;
	cqe.wqe_index = done.index;
	cqe.owner_opcode = static_cast<std::uint8_t>(
		static_cast<std::uint8_t>(wqe_opcode(done.opcode)) | Cqe::send_bit);
	return post(qp.send_cqn, cqe, false);
}

bool CompletionWriter::received(const hca::QueuePair &qp, std::uint32_t cqn,
				const ReceiveDone &done)
{
	Cqe cqe{};
	cqe.qpn_word = qp.qpn;
	cqe.immediate = done.immediate;
	cqe.set_remote(done.grh, done.path_bits, done.srqn != 0 ? done.srqn : done.source_qpn);
	cqe.set_sl(done.sl);
	cqe.source_lid = done.source_lid;
	cqe.status = checksum_status(done.checksums);
	if (done.checksums.l4_checksum_ok()) {
		cqe.checksum_flags = Cqe::l4_checksum_ok;
		/* The sum over a packet whose L4 checksum is correct. */
		cqe.checksum = 0xffff;
	}
	cqe.byte_count = done.byte_count;
	cqe.wqe_index = done.index;
	cqe.owner_opcode = static_cast<std::uint8_t>(receive_opcode(done.opcode));
	return post(cqn, cqe, done.solicited);
}

bool CompletionWriter::failed(const hca::QueuePair &qp, std::uint32_t cqn, const Failure &failure)
{
	ErrorCqe error{};
	error.qpn_word = qp.qpn;
	error.wqe_index = failure.index;
	error.syndrome = static_cast<std::uint8_t>(cqe_syndrome(failure.syndrome));
	error.owner_opcode = static_cast<std::uint8_t>(hw::mlx4::cqe_opcode_error |
						       (failure.is_send ? Cqe::send_bit : 0));
	Cqe cqe = std::bit_cast<Cqe>(error);
	// Drivers read the SRQ number from the same field in an error.
	if (failure.srqn)
		cqe.set_remote(false, 0, failure.srqn);
	return post(cqn, cqe, false);
}

bool CompletionWriter::post(std::uint32_t cqn, const Cqe &cqe, bool solicited)
{
	CompletionQueue *queue = card_.completion_queue(cqn);
	return queue && !queue->failed() && queue->post(cqe, solicited);
}

bool CompletionWriter::raise(Event event, std::uint32_t qpn)
{
	return card_.events.raise_if_room(event_type(event), qpn);
}

} // namespace weft::mlx4::transport
