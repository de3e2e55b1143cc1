// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/transport/completion_writer.hpp"

#include <bit>

#include "connectx/card_context.hpp"
#include "mellanox/codes.hpp"

namespace weft::connectx::transport
{

using hw::connectx::Cqe;
using hw::connectx::CqeReceiveOpcode;
using hw::connectx::ErrorCqe;

/* The checksums of a datagram are told in the entry's own bits. */
static_assert(unsigned{ChecksumStatus::ipv4} == Cqe::ipv4 &&
	      unsigned{ChecksumStatus::ipv4_fragment} == Cqe::ipv4_fragment);
static_assert(unsigned{ChecksumStatus::ipv6} == Cqe::ipv6 &&
	      unsigned{ChecksumStatus::ipv4_options} == Cqe::ipv4_options);
static_assert(unsigned{ChecksumStatus::tcp} == Cqe::tcp &&
	      unsigned{ChecksumStatus::udp} == Cqe::udp);
static_assert(unsigned{ChecksumStatus::ip_checksum_ok} == Cqe::ip_checksum_ok);
static_assert(ChecksumStatus::l4_checksum_ok == Cqe::l4_checksum_ok);

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
	cqe.status = done.checksums.status;
	cqe.checksum_flags = done.checksums.flags;
	cqe.checksum = done.checksums.checksum;
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
	error.owner_opcode = static_cast<std::uint8_t>(hw::connectx::cqe_opcode_error |
						       (failure.is_send ? Cqe::send_bit : 0));
	Cqe cqe = std::bit_cast<Cqe>(error);
	// Where a good completion has it: drivers look there in either case.
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

} // namespace weft::connectx::transport
