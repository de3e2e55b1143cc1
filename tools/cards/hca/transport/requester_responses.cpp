// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Handles acknowledges and responses to a requester, and retries if none arrive.
#include "cards/hca/transport/requester.hpp"

#include <array>

#include "cards/hca/transport/engine.hpp"

namespace weft::hca::transport
{

void Requester::response(Qp &qp, fabric::Packet &packet)
{
	RequesterState &s = qp.send;
	while (packet.packets() > 1 && Psn(packet.bth().psn()).before(s.unacknowledged))
		packet.take_first();
	const packet::Headers headers = packet.parse();
	Psn psn(headers.bth.psn());
	/* Older PSNs are duplicates, and PSNs that were never sent are invalid (IBA 9.7.5.1.1). */
	if (!qp.can_send() || psn.before(s.unacknowledged) || !psn.before(s.limit))
		return;
	switch (ib::opcode_operation(headers.bth.opcode)) {
	case ib::Operation::ack:
		if (headers.aeth.kind() != ib::Aeth::Kind::ack) {
			negative(qp, headers);
			break;
		}
		if (!acknowledge_before(qp, psn + 1))
			lost(qp);
		break;
	case ib::Operation::atomic_ack:
		atomic_response(qp, headers);
		break;
	case ib::Operation::read_response_first:
	case ib::Operation::read_response_middle:
	case ib::Operation::read_response_last:
	case ib::Operation::read_response_only:
		read_response(qp, headers, packet);
		break;
	default:
		break;
	}
	engine_.schedule(qp);
}

/*
 * Treats all packets before @psn as acknowledged, and completes requests accordingly. Returns false
 * at a read or atomic whose response has not arrived, because it was lost (IBA 9.7.5.1.1).
 */
bool Requester::acknowledge_before(Qp &qp, Psn psn)
{
	RequesterState &s = qp.send;
	bool moved = false;
	while (s.unacknowledged.before(psn)) {
		retire(qp);
		if (s.work.empty())
			break;
		SendWork &front = *s.work.front();
		if (!front.started)
			break;
		if (front.request.is_read_or_atomic()) {
			if (moved)
				progress(qp);
			return false;
		}
		Psn end = front.end();
		moved = true;
		if (psn.before(end)) {
			s.unacknowledged = psn;
			break;
		}
		s.unacknowledged = end;
		front.finished = true;
	}
	retire(qp);
	if (moved)
		progress(qp);
	return true;
}

/* Resets the retry counters, because the peer has made progress. */
void Requester::progress(Qp &qp)
{
	RequesterState &s = qp.send;
	s.retries_left = qp.pair.retry_count;
	s.rnr_retries_left = qp.pair.rnr_retry;
	s.recovering.reset();
	if (s.next.before(s.unacknowledged))
		s.next = s.unacknowledged;
	if (s.rnr_wait)
		return;
	if (s.unacknowledged == s.limit)
		engine_.clear_deadline(qp);
	else
		restart_timer(qp);
}

/* Completes finished requests, oldest first. */
void Requester::retire(Qp &qp)
{
	while (!qp.send.work.empty() && qp.send.work.front()->finished)
		complete_front(qp);
	if (qp.pair.state == QpState::sq_draining && qp.send.work.empty())
		engine_.schedule(qp);
}

void Requester::complete_front(Qp &qp, std::uint32_t byte_count, std::span<const std::byte> data)
{
	RequesterState &s = qp.send;
	auto work = release(qp);
	if (s.cursor > 0)
		s.cursor--;
	s.ssn = (s.ssn + 1) & Psn::kMask;
	engine_.completions().sent(qp, work->request, work->index, byte_count, data);
	recycle(std::move(work));
}

/* Retransmits from @psn on, which is not acknowledged. */
void Requester::go_back(Qp &qp, Psn psn)
{
	RequesterState &s = qp.send;
	s.next = psn;
	s.unrequested = 0;
	s.cursor = 0;
	while (s.cursor < s.work.size()) {
		const SendWork &work = *s.work[s.cursor];
		if (!work.finished && psn.before(work.end()))
			break;
		if (!work.started)
			break;
		s.cursor++;
	}
}

/* Handles evidence from the peer that the oldest packet, or the response to it, was lost. */
void Requester::lost(Qp &qp)
{
	RequesterState &s = qp.send;
	if (s.recovering == s.unacknowledged)
		return;
	s.recovering = s.unacknowledged;
	retry(qp);
}

/* Retransmits from the oldest packet, or gives up. */
void Requester::retry(Qp &qp)
{
	RequesterState &s = qp.send;
	if (s.work.empty())
		return;
	if (s.retries_left == 0) {
		fail_front(qp, Syndrome::retry_exceeded);
		return;
	}
	s.retries_left--;
	go_back(qp, s.unacknowledged);
	restart_timer(qp);
	engine_.schedule(qp);
}

void Requester::timed_out(Qp &qp)
{
	RequesterState &s = qp.send;
	if (!qp.can_send())
		return;
	if (s.rnr_wait) {
		s.rnr_wait = false;
		engine_.schedule(qp);
		return;
	}
	/* A packet that waits for a credit has not been lost. */
	if (qp.waiting) {
		restart_timer(qp);
		return;
	}
	if (s.unacknowledged != s.limit)
		retry(qp);
}

void Requester::negative(Qp &qp, const packet::Headers &headers)
{
	RequesterState &s = qp.send;
	Psn psn(headers.bth.psn());
	Diagnostics &counters = engine_.card().diagnostics;
	/* A NAK acknowledges all earlier packets (IBA 9.7.5.2.8). */
	if (!acknowledge_before(qp, psn)) {
		lost(qp);
		return;
	}
	if (s.work.empty())
		return;
	if (headers.aeth.kind() == ib::Aeth::Kind::rnr_nak) {
		counters.sq_rnr_naks++;
		if (s.rnr_wait)
			return;
		if (s.rnr_retries_left == 0) {
			fail_front(qp, Syndrome::rnr_retry_exceeded);
			return;
		}
		/* 7 means unlimited retries (IBA 9.7.5.2.8). */
		if (qp.pair.rnr_retry != 7)
			s.rnr_retries_left--;
		s.rnr_wait = true;
		go_back(qp, psn);
		engine_.set_deadline(qp,
				     engine_.card().loop.now() + rnr_delay(headers.aeth.value()));
		return;
	}
	if (headers.aeth.kind() != ib::Aeth::Kind::nak)
		return;
	switch (headers.aeth.value()) {
	case ib::Aeth::psn_sequence:
		counters.sq_out_of_sequence++;
		lost(qp);
		break;
	case ib::Aeth::invalid_request:
		fail_front(qp, Syndrome::remote_invalid_request);
		break;
	case ib::Aeth::remote_access:
		fail_front(qp, Syndrome::remote_access);
		break;
	case ib::Aeth::remote_operational:
		fail_front(qp, Syndrome::remote_operation);
		break;
	default:
		fail_front(qp, Syndrome::bad_response);
		break;
	}
}

/*
 * Returns the request that waits for a response with @psn, or null. If it is not null, all earlier
 * requests have been acknowledged.
 */
SendWork *Requester::answered_by(Qp &qp, Psn psn)
{
	RequesterState &s = qp.send;
	if (!acknowledge_before(qp, psn)) {
		lost(qp);
		return nullptr;
	}
	if (s.work.empty() || s.unacknowledged != psn || !s.work.front()->started)
		return nullptr;
	return s.work.front().get();
}

/*
 * Returns true if the result is stored in the completion. The result of an unsignaled request is
 * written to memory, however short it is.
 */
bool Requester::answer_in_completion(const Qp &qp, const SendRequest &request)
{
	return request.signalled && request.length <= qp.pair.inline_response;
}

void Requester::read_response(Qp &qp, const packet::Headers &headers, const fabric::Packet &packet)
{
	RequesterState &s = qp.send;
	Psn psn(headers.bth.psn());
	SendWork *answered = answered_by(qp, psn);
	if (!answered || !answered->request.is_read())
		return;
	SendWork &work = *answered;

	auto number = static_cast<std::uint32_t>(psn.distance_from(work.first));
	std::uint64_t offset = std::uint64_t{number} * qp.mtu();
	const fabric::Payload &payload = packet.payload();
	const unsigned packets = packet.packets();
	bool last = number + packets == work.packets;
	std::uint64_t due = last ? work.request.length - offset : std::uint64_t{packets} * qp.mtu();
	auto traits = ib::opcode_traits(headers.bth.opcode);
	if (number + packets > work.packets || payload.size() != due ||
	    traits.has(ib::OpcodeTraits::last) != last) {
		fail_front(qp, Syndrome::bad_response);
		return;
	}
	std::array<std::byte, kCompletionDataMax> bytes;
	std::span<const std::byte> data;
	auto error = MemoryError::none;
	if (answer_in_completion(qp, work.request)) {
		const auto room = std::span(bytes).first(payload.size());
		if (payload.copy_to(room) != room.size())
			error = MemoryError::taken_back;
		data = room;
	} else {
		error = mover_.scatter(work.request.pieces, offset, payload,
				       qp.key_use(0, KeyAccess::local_write));
	}
	if (error == MemoryError::taken_back)
		return;
	if (error != MemoryError::none) {
		fail_front(qp, Syndrome::local_protection);
		return;
	}
	s.unacknowledged = psn + packets;
	if (last) {
		s.reads--;
		complete_front(qp, static_cast<std::uint32_t>(work.request.length), data);
		retire(qp);
	}
	progress(qp);
}

void Requester::atomic_response(Qp &qp, const packet::Headers &headers)
{
	RequesterState &s = qp.send;
	Psn psn(headers.bth.psn());
	SendWork *answered = answered_by(qp, psn);
	if (!answered || !answered->request.is_atomic())
		return;
	SendWork &work = *answered;
	/* Convert from big-endian, as in the packet, to the byte order of the guest. */
	std::uint64_t original = headers.atomic_ack.original;
	if (engine_.card().big_endian_host)
		original = ib::be64(original).raw();
	auto data = std::as_bytes(std::span(&original, 1));
	auto error = MemoryError::none;
	if (!answer_in_completion(qp, work.request)) {
		error = mover_.scatter(work.request.pieces, 0, data,
				       qp.key_use(0, KeyAccess::local_write));
		data = {};
	}
	if (error != MemoryError::none) {
		fail_front(qp, Syndrome::local_protection);
		return;
	}
	s.unacknowledged = psn + 1;
	s.reads--;
	complete_front(qp, sizeof(original), data);
	retire(qp);
	progress(qp);
}

} // namespace weft::hca::transport
