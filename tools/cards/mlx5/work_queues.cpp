// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/work_queues.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "cards/mlx5/card_context.hpp"
#include "cards/mlx5/send_request.hpp"

namespace weft::mlx5
{

using hw::mlx5::SrqNext;
using hw::mlx5::WqeControl;
using hw::mlx5::send_block;
using hw::mlx5::wqe_bytes_max;
using hw::mlx5::wqe_unit;

namespace
{

const QueuePair &own(const hca::QueuePair &qp)
{
	return static_cast<const QueuePair &>(qp);
}

// A counter of a queue pair's doorbell record.
enum class Counter : std::uint8_t { receive = 0, send = 4 };

std::optional<std::uint16_t> posted(const CardContext &card, const QueuePair &qp, Counter which)
{
	const GuestMemory *const memory = card.memory.memory();
	const auto raw =
		memory ? memory->load<std::uint32_t>(qp.record + static_cast<unsigned>(which))
		       : std::nullopt;
	return raw ? std::optional(static_cast<std::uint16_t>(ib::be32::from_raw(*raw).value()))
		   : std::nullopt;
}

// Reads a part of a request that begins in block @index and may wrap around.
bool read_send(const CardContext &card, const QueuePair &qp, std::uint16_t index,
	       std::size_t offset, std::span<std::byte> out)
{
	const std::uint64_t bytes = std::uint64_t{qp.send_blocks()} * send_block;
	const std::uint64_t begin =
		(std::uint64_t{index & (qp.send_blocks() - 1)} * send_block + offset) % bytes;
	const std::size_t first = std::min<std::uint64_t>(out.size(), bytes - begin);
	const GuestMemory *const memory = card.memory.memory();
	return qp.buffer.read(memory, qp.send_offset() + begin, out.first(first)) &&
	       qp.buffer.read(memory, qp.send_offset(), out.subspan(first));
}

// True if the queue pair of the send queue's interface exists and may send.
bool has_sender(const CardContext &card, const QueuePair &queue)
{
	const SendInterface *const tis = card.raw.send_interfaces.find(queue.tis);
	const QueuePair *const sender = tis ? card.queue_pair(tis->underlay_qpn) : nullptr;
	return sender && sender->steered && sender->state == QpState::rts &&
	       sender->qpn == queue.sends_as;
}

} // namespace

hca::SharedReceiveQueue *WorkQueues::shared_receive_queue(std::uint32_t srqn) const
{
	return card_.shared_receive_queue(srqn);
}

Taken WorkQueues::take_send(const hca::QueuePair &pair, std::uint16_t index, SendRequest &request,
			    Syndrome &failure)
{
	const QueuePair &qp = own(pair);
	if (!qp.has_send_queue || !card_.memory.memory())
		return Taken::none;
	const auto end = posted(card_, qp, Counter::send);
	if (!end)
		return Taken::broken;
	const auto waiting = static_cast<std::uint16_t>(*end - index);
	// A record that claims more entries than the queue has is ignored.
	if (waiting == 0 || waiting > qp.send_blocks())
		return Taken::none;

	std::array<std::byte, wqe_bytes_max + wqe_unit> bytes;
	WqeControl control;
	if (!read_send(card_, qp, index, 0, std::span(bytes).first(sizeof(control))))
		return Taken::broken;
	std::memcpy(&control, bytes.data(), sizeof(control));
	std::size_t size = std::max<std::size_t>(WqeControl::units.get(control.bytes) * wqe_unit,
						 sizeof(control));
	const std::size_t blocks = (size + send_block - 1) / send_block;
	const bool whole = blocks <= waiting;
	if (!whole)
		size = sizeof(control);
	else if (!read_send(card_, qp, index, sizeof(control),
			    std::span(bytes).subspan(sizeof(control), size - sizeof(control))))
		return Taken::broken;
	failure = decode_send(std::span(bytes).first(size), qp, request);
	if (!whole || (qp.is_send_queue && !request.is_local() && !has_sender(card_, qp)))
		failure = Syndrome::local_qp_operation;
	request.slots = static_cast<std::uint16_t>(whole ? blocks : waiting);
	return Taken::yes;
}

std::uint32_t WorkQueues::receives_posted(const hca::QueuePair &pair, std::uint16_t next) const
{
	const QueuePair &qp = own(pair);
	const auto end = qp.has_receive_queue ? posted(card_, qp, Counter::receive) : std::nullopt;
	const auto waiting = static_cast<std::uint16_t>(end.value_or(next) - next);
	return waiting <= qp.receive_size() ? waiting : 0;
}

Taken WorkQueues::take_receive(const hca::QueuePair &pair, std::uint16_t &next,
			       hca::SharedReceiveQueue *xrc_srq, ReceiveWork &work)
{
	const QueuePair &qp = own(pair);
	std::array<std::byte, limits::kReceiveWqeBytes> bytes;
	std::span<std::byte> segments;
	bool readable = false;

	work.used = 0;
	work.room = 0;
	work.pieces.clear();
	work.pd = qp.pd;
	work.cqn = qp.receive_cqn;
	work.srqn = 0;

	auto *srq = static_cast<SharedReceiveQueue *>(xrc_srq);
	if (!srq && qp.uses_srq) {
		srq = card_.shared_receive_queue(qp.srqn);
		if (!srq)
			return Taken::broken;
	}
	if (srq) {
		if (const Taken taken = srq->take(work, xrc_srq != nullptr); taken != Taken::yes)
			return taken;
		const std::size_t size = std::min<std::size_t>(srq->stride(), bytes.size());
		segments = std::span(bytes).first(size - sizeof(SrqNext));
		readable =
			srq->pages().read(card_.memory.memory(),
					  srq->wqe_offset(work.index) + sizeof(SrqNext), segments);
	} else {
		if (receives_posted(qp, next) == 0)
			return Taken::none;
		work.index = next++;
		segments = std::span(bytes).first(
			std::min<std::size_t>(qp.receive_stride(), bytes.size()));
		const std::uint64_t slot = work.index & (qp.receive_size() - 1);
		readable = qp.buffer.read(card_.memory.memory(), slot << qp.log_receive_stride,
					  segments);
	}
	work.taken = true;
	if (!readable)
		return Taken::broken;
	work.room = decode_receive(segments, work.pieces);
	return Taken::yes;
}

Taken WorkQueues::take_datagram(const hca::QueuePair &pair, std::span<const std::byte> payload,
				std::uint64_t bytes, ReceiveWork &work)
{
	const hw::mlx5::FlowHeaders headers = read_headers(payload);
	const auto tir = card_.flows.steer(own(pair).root_table, headers);
	const auto choice = tir ? card_.raw.choose(*tir, headers) : std::nullopt;
	ReceiveQueue *const queue = choice ? card_.raw.receive_queues.find(choice->rqn) : nullptr;
	if (!queue)
		return Taken::none;
	work.used = 0;
	work.room = 0;
	work.pieces.clear();
	work.srqn = 0;
	work.steering = {.queue = choice->rqn,
			 .hash = choice->hash.value,
			 .hash_kind = choice->hash.kind,
			 .sum = sum_of(payload)};
	switch (queue->take(card_.memory.memory(), bytes, work)) {
	case Taken::yes:
		return Taken::yes;
	case Taken::none:
		card_.raw.count_drop(*queue);
		return Taken::none;
	case Taken::broken:
		stop_receives(pair, work);
		return Taken::none;
	}
	return Taken::none;
}

void WorkQueues::stop_receives(const hca::QueuePair &, const ReceiveWork &work)
{
	ReceiveQueue *const queue = card_.raw.receive_queues.find(work.steering.queue);
	if (!queue || queue->state() == RawState::error)
		return;
	queue->set_state(RawState::error);
	card_.events.raise(EventType::wq_catastrophic, work.steering.queue,
			   EventQueues::Kind::receive_queue);
}

} // namespace weft::mlx5
