// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/transport/work_queues.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <hw/mlx4/wqe.hpp>

#include "cards/mlx4/card_context.hpp"
#include "cards/mlx4/transport/send_request.hpp"

namespace weft::mlx4::transport
{

using namespace hw::mlx4;

namespace
{

/* Data segments of the largest stride, 2^(4 + 7) bytes. */
constexpr std::size_t kReceiveBytesMax = 2048;

const QueuePair &own(const hca::QueuePair &qp)
{
	return static_cast<const QueuePair &>(qp);
}

/* Returns true if the owner bit in the first dword of a send WQE marks it as posted. */
bool owner_matches(const CardContext &card, const QueuePair &qp, std::uint16_t index)
{
	const WorkQueue &queue = qp.send_queue;
	GuestMemory *memory = card.memory.memory();
	auto address = card.memory.bus_address(qp.buffer, queue.wqe_offset(index));
	if (!memory || !address)
		return false;
	auto raw = memory->load<std::uint32_t>(*address);
	if (!raw)
		return false;
	bool owner = (ib::be32::from_raw(*raw) & WqeControl::owner_bit) != 0;
	return owner == ((index >> queue.log_size & 1) != 0);
}

} // namespace

hca::SharedReceiveQueue *WorkQueues::shared_receive_queue(std::uint32_t srqn) const
{
	return card_.shared_receive_queue(srqn);
}

std::uint32_t WorkQueues::receives_posted(const hca::QueuePair &pair, std::uint16_t next) const
{
	const QueuePair &qp = own(pair);
	GuestMemory *memory = card_.memory.memory();
	if (!qp.receive_queue.present || !memory)
		return 0;
	auto raw = memory->load<std::uint32_t>(qp.doorbell_record);
	if (!raw)
		return 0;
	auto posted = static_cast<std::uint16_t>(ib::be32::from_raw(*raw).value());
	auto waiting = static_cast<std::uint16_t>(posted - next);
	/* A record that claims more entries than the queue has is ignored. */
	return waiting <= qp.receive_queue.size() ? waiting : 0;
}

Taken WorkQueues::take_receive(const hca::QueuePair &pair, std::uint16_t &next,
			       hca::SharedReceiveQueue *xrc_srq, ReceiveWork &work)
{
	const QueuePair &qp = own(pair);
	std::array<std::byte, kReceiveBytesMax> bytes;
	std::span<std::byte> segments;
	bool readable = false;

	work.used = 0;
	work.room = 0;
	work.pieces.clear();
	work.pd = qp.pd;
	work.cqn = qp.receive_cqn;
	work.srqn = 0;

	SharedReceiveQueue *srq = static_cast<SharedReceiveQueue *>(xrc_srq);
	if (!srq && qp.uses_srq) {
		srq = card_.shared_receive_queue(qp.srqn);
		if (!srq)
			return Taken::broken;
	}
	if (srq) {
		if (const Taken taken = srq->take(work, xrc_srq != nullptr); taken != Taken::yes)
			return taken;
		std::size_t size = std::min<std::size_t>(srq->stride(), bytes.size());
		segments = std::span(bytes).first(size - sizeof(SrqNext));
		readable = card_.memory.read(
			srq->buffer(), srq->wqe_offset(work.index) + sizeof(SrqNext), segments);
	} else {
		if (receives_posted(qp, next) == 0)
			return Taken::none;
		const WorkQueue &queue = qp.receive_queue;
		work.index = next++;
		segments =
			std::span(bytes).first(std::min<std::size_t>(queue.stride(), bytes.size()));
		readable = card_.memory.read(qp.buffer, queue.wqe_offset(work.index), segments);
	}
	work.taken = true;
	if (!readable)
		return Taken::broken;
	work.room = decode_receive(segments, work.pieces);
	return Taken::yes;
}

Taken WorkQueues::take_send(const hca::QueuePair &pair, std::uint16_t index, SendRequest &request,
			    Syndrome &failure)
{
	const QueuePair &qp = own(pair);
	if (!qp.send_queue.present || !owner_matches(card_, qp, index))
		return Taken::none;
	const WorkQueue &queue = qp.send_queue;
	std::uint64_t offset = queue.wqe_offset(index);
	std::array<std::byte, wqe_bytes_max + wqe_unit> bytes;

	WqeControl control;
	auto head = std::span(bytes).first(sizeof(control));
	if (!card_.memory.read(qp.buffer, offset, head))
		return Taken::broken;
	std::memcpy(&control, bytes.data(), sizeof(control));
	std::size_t size = std::max<std::size_t>(control.units() * wqe_unit, sizeof(control));

	failure = Syndrome::none;
	if (size > queue.stride()) {
		failure = Syndrome::local_qp_operation;
		size = sizeof(control);
	} else if (!card_.memory.read(
			   qp.buffer, offset + sizeof(control),
			   std::span(bytes).subspan(sizeof(control), size - sizeof(control)))) {
		return Taken::broken;
	}
	auto syndrome = decode(std::span(bytes).first(size), qp.service, request);
	if (failure == Syndrome::none)
		failure = syndrome;
	return Taken::yes;
}

} // namespace weft::mlx4::transport
