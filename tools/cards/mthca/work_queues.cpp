// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/work_queues.hpp"

#include <algorithm>
#include <array>

#include "cards/mthca/card_context.hpp"
#include "cards/mthca/send_decoder.hpp"

namespace weft::mthca
{

using hw::mthca::WqeNext;

namespace
{

// A WQE of the largest stride has 2^(4 + 7) bytes.
constexpr std::size_t kWqeBytesMax = 2048;
} // namespace

hca::SharedReceiveQueue *WorkQueues::shared_receive_queue(std::uint32_t srqn) const
{
	return card_.shared_receive_queue(srqn);
}

std::uint32_t WorkQueues::receives_posted(const hca::QueuePair &pair, std::uint16_t next) const
{
	const QueuePair &qp = own(pair);
	if (!qp.has_receive_queue)
		return 0;
	const auto posted =
		card_.memory.load_record(card_.record(qp.uar_page, qp.receive_queue.record));
	if (!posted)
		return 0;
	const auto waiting = static_cast<std::uint16_t>(*posted - next);
	// A record that claims more entries than the queue has is ignored.
	return waiting <= qp.receive_queue.size() ? waiting : 0;
}

Taken WorkQueues::take_receive(const hca::QueuePair &pair, std::uint16_t &next,
			       hca::SharedReceiveQueue *, ReceiveWork &work)
{
	const QueuePair &qp = own(pair);
	std::array<std::byte, kWqeBytesMax> bytes;
	std::span<std::byte> segments;
	bool readable = false;

	work.used = 0;
	work.room = 0;
	work.pieces.clear();
	work.srqn = 0;
	work.cqn = qp.receive_cqn;
	work.pd = qp.pd;
	if (qp.uses_srq) {
		SharedReceiveQueue *const srq = card_.shared_receive_queue(qp.srqn);
		if (!srq)
			return Taken::broken;
		if (const Taken taken = srq->take(work, false); taken != Taken::yes)
			return taken;
		segments = std::span(bytes).first(srq->stride() - sizeof(WqeNext));
		readable = card_.memory.read(
			srq->buffer(), srq->wqe_offset(work.index) + sizeof(WqeNext), segments);
	} else {
		if (receives_posted(qp, next) == 0)
			return Taken::none;
		const WorkQueue &queue = qp.receive_queue;
		work.index = next++;
		segments = std::span(bytes).first(queue.stride() - sizeof(WqeNext));
		readable = card_.memory.read(qp.buffer(queue),
					     queue.offset(work.index) + sizeof(WqeNext), segments);
	}
	work.taken = true;
	if (!readable)
		return Taken::broken;
	work.room = decode_receive(segments, work.pieces);
	return Taken::yes;
}

// WQE k is described by WQE k - 1, and the first one by the last one of the ring. This description
// is also used if a doorbell contains another copy, because drivers write both. A slot is not
// reused before its completion was polled, so the description still exists.
Taken WorkQueues::take_send(const hca::QueuePair &pair, std::uint16_t index, SendRequest &request,
			    Syndrome &failure)
{
	const QueuePair &qp = own(pair);
	const WorkQueue &queue = qp.send_queue;
	const auto waiting = static_cast<std::uint16_t>(qp.send_producer - index);
	if (waiting == 0 || waiting > queue.size())
		return Taken::none;
	const QueueBuffer buffer = qp.buffer(queue);
	WqeNext link;
	if (!card_.memory.read(buffer, queue.offset(index - 1u),
			       std::as_writable_bytes(std::span(&link, 1))))
		return Taken::broken;
	std::array<std::byte, kWqeBytesMax> bytes;
	const std::size_t size =
		std::max<std::size_t>(link.units() * hw::mellanox_icm::wqe_unit, sizeof(WqeNext));
	const bool fits = size <= queue.stride();
	const auto wqe = std::span(bytes).first(fits ? size : sizeof(WqeNext));
	if (!card_.memory.read(buffer, queue.offset(index), wqe))
		return Taken::broken;
	// A WQE that is too long is refused because of its size.
	failure = decode(link, wqe, qp.service, request);
	request.signalled |= qp.signal_all;
	return Taken::yes;
}

} // namespace weft::mthca
