// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/transport/work_queues.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <hw/connectx/wqe.hpp>

namespace weft::connectx::transport
{

using namespace hw::connectx;

namespace
{

/* Data segments of the largest stride: 2^(4 + 7) bytes. */
constexpr std::size_t receive_bytes_max = 2048;

/* The first dword of a send WQE, if it is posted. */
bool owner_matches(const CardContext &card, const Qp &qp)
{
	const WorkQueue &queue = qp.pair.send_queue;
	GuestMemory *memory = card.memory.memory();
	auto address = card.memory.bus_address(qp.pair.buffer, queue.wqe_offset(qp.send.next_wqe));
	if (!memory || !address)
		return false;
	auto raw = memory->load<std::uint32_t>(*address);
	if (!raw)
		return false;
	bool owner = (ib::be32::from_raw(*raw) & WqeControl::owner_bit) != 0;
	return owner == ((qp.send.next_wqe >> queue.log_size & 1) != 0);
}

} // namespace

std::uint32_t receives_posted(const CardContext &card, const Qp &qp)
{
	GuestMemory *memory = card.memory.memory();
	if (!qp.pair.receive_queue.present || !memory)
		return 0;
	auto raw = memory->load<std::uint32_t>(qp.pair.doorbell_record);
	if (!raw)
		return 0;
	auto posted = static_cast<std::uint16_t>(ib::be32::from_raw(*raw).value());
	auto waiting = static_cast<std::uint16_t>(posted - qp.receive.next_wqe);
	/* A record that claims more than there is room for is not believed at all. */
	return waiting <= qp.pair.receive_queue.size() ? waiting : 0;
}

Taken take_receive(CardContext &card, Qp &qp, SharedReceiveQueue *xrc_srq, ReceiveWork &work)
{
	std::array<std::byte, receive_bytes_max> bytes;
	std::span<std::byte> segments;
	bool readable = false;

	work.used = 0;
	work.room = 0;
	work.pieces.clear();
	work.srqn = 0;
	work.cqn = qp.pair.receive_cqn;
	work.pd = qp.pair.pd;

	SharedReceiveQueue *srq = xrc_srq;
	if (!srq && qp.pair.uses_srq) {
		srq = card.shared_receive_queue(qp.pair.srqn);
		if (!srq)
			return Taken::broken;
	}
	if (srq) {
		auto index = srq->take();
		if (!index)
			return srq->failed() ? Taken::broken : Taken::none;
		work.index = *index;
		work.pd = srq->pd();
		if (xrc_srq) {
			work.cqn = srq->cqn();
			work.srqn = srq->number();
		}
		std::size_t size = std::min<std::size_t>(srq->stride(), bytes.size());
		segments = std::span(bytes).first(size - sizeof(SrqNext));
		readable = card.memory.read(
			srq->buffer(), srq->wqe_offset(work.index) + sizeof(SrqNext), segments);
	} else {
		if (receives_posted(card, qp) == 0)
			return Taken::none;
		const WorkQueue &queue = qp.pair.receive_queue;
		work.index = qp.receive.next_wqe++;
		segments =
			std::span(bytes).first(std::min<std::size_t>(queue.stride(), bytes.size()));
		readable = card.memory.read(qp.pair.buffer, queue.wqe_offset(work.index), segments);
	}
	work.taken = true;
	if (!readable)
		return Taken::broken;
	work.room = decode_receive(segments, work.pieces);
	return Taken::yes;
}

bool send_posted(const CardContext &card, const Qp &qp)
{
	return qp.pair.send_queue.present && qp.send.rung && owner_matches(card, qp);
}

Taken take_send(const CardContext &card, Qp &qp, SendWork &work)
{
	if (!send_posted(card, qp)) {
		qp.send.rung = false;
		return Taken::none;
	}
	const WorkQueue &queue = qp.pair.send_queue;
	std::uint64_t offset = queue.wqe_offset(qp.send.next_wqe);
	std::array<std::byte, wqe_bytes_max + wqe_unit> bytes;

	WqeControl control;
	auto head = std::span(bytes).first(sizeof(control));
	if (!card.memory.read(qp.pair.buffer, offset, head))
		return Taken::broken;
	std::memcpy(&control, bytes.data(), sizeof(control));
	std::size_t size = std::max<std::size_t>(control.units() * wqe_unit, sizeof(control));

	work.index = qp.send.next_wqe++;
	work.packets = 0;
	work.failure = CqeSyndrome::none;
	work.started = false;
	work.finished = false;
	if (size > queue.stride()) {
		work.failure = CqeSyndrome::local_qp_operation;
		size = sizeof(control);
	} else if (!card.memory.read(
			   qp.pair.buffer, offset + sizeof(control),
			   std::span(bytes).subspan(sizeof(control), size - sizeof(control)))) {
		return Taken::broken;
	}
	auto syndrome = decode(std::span(bytes).first(size), qp.pair.service, work.request);
	if (work.failure == CqeSyndrome::none)
		work.failure = syndrome;
	return Taken::yes;
}

} // namespace weft::connectx::transport
