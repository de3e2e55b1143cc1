// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "send_queue.hpp"

namespace mad
{

/*
 * Removes the send's packets that are not posted yet. The search starts with the segments that are
 * likely to be queued, because a message may have very many segments and interrupts are disabled.
 */
unsigned SendQueue::withdraw_some(Send &send)
{
	const unsigned count = send.queued_;

	for (std::uint32_t segment = send.rmpp.oldest_in_flight(); send.queued_ != 0;
	     segment = segment % send.packet_count() + 1) {
		Packet &packet = send.packet(segment);
		if (packet.place_ != Packet::Place::backlog)
			continue;
		packet.node_.unlink();
		packet.place_ = Packet::Place::idle;
		send.queued_--;
	}
	return count;
}

/*
 * The stack protector costs eight instructions per MAD and is not needed here: the only variables
 * on the stack are an address and a pointer, and no array.
 */
[[gnu::no_stack_protector]] SendQueue::Lost SendQueue::pump(bool is_open)
{
	while (posted_ < depth) {
		Packet *packet = backlog_.pop_front();
		if (!packet)
			break;
		packet->send->queued_--;
		if (!is_open) [[unlikely]] {
			packet->place_ = Packet::Place::idle;
			return {packet, IB_WC_WR_FLUSH_ERR};
		}
		packet->place_ = Packet::Place::posted;
		packet->done = done_;
		packet->sge_.length = ib::mad_bytes;
		packet->sge_.lkey = pd_->local_dma_lkey;
		packet->wr.ah = packet->send->ah;
		packet->wr.wr.wr_cqe = packet;
		packet->wr.wr.sg_list = &packet->sge_;
		packet->wr.wr.num_sge = 1;
		packet->wr.wr.opcode = IB_WR_SEND;
		packet->wr.wr.send_flags = IB_SEND_SIGNALED;

		auto mapped = rdma::map_single(pd_->device, packet->bytes, ib::mad_bytes,
					       kern::dma::Direction::to_device);
		if (!mapped.ok()) [[unlikely]] {
			packet->place_ = Packet::Place::idle;
			return {packet, IB_WC_LOC_PROT_ERR};
		}
		packet->sge_.addr = mapped.value();
		if (ib_post_send(qp_, &packet->wr.wr, nullptr)) [[unlikely]] {
			unmap(*packet);
			packet->place_ = Packet::Place::idle;
			return {packet, IB_WC_LOC_QP_OP_ERR};
		}
		/* Its completion is not processed before the special QP's lock is released. */
		packet->period_ = period_;
		posted_packets_.push_back(*packet);
		posted_++;
	}
	return {};
}

} // namespace mad
