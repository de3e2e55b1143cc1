// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/responder.hpp"

#include <algorithm>
#include <array>

#include "cards/hca/transport/addressing.hpp"
#include "cards/hca/transport/atomics.hpp"
#include "cards/hca/transport/engine.hpp"
#include "cards/hca/transport/work_queues.hpp"

namespace weft::hca::transport
{

using Message = ResponderState::Message;
using Traits = ib::OpcodeTraits;

namespace
{

/* Maximum length of a message (IBA 9.7.4.1.6). */
constexpr std::uint32_t kMessageMax = 1u << 31;

constexpr std::uint8_t kAckSyndrome =
	ib::Aeth::make_syndrome(ib::Aeth::Kind::ack, ib::Aeth::credits_invalid);

std::uint8_t nak_syndrome(ib::Aeth::NakCode code)
{
	return ib::Aeth::make_syndrome(ib::Aeth::Kind::nak, code);
}

bool is_send(std::uint8_t opcode)
{
	auto operation = ib::opcode_operation(opcode);
	return operation <= ib::Operation::send_only_imm ||
	       operation == ib::Operation::send_last_inv ||
	       operation == ib::Operation::send_only_inv;
}

bool is_write(std::uint8_t opcode)
{
	auto operation = ib::opcode_operation(opcode);
	return operation >= ib::Operation::write_first &&
	       operation <= ib::Operation::write_only_imm;
}

bool is_atomic(std::uint8_t opcode)
{
	auto traits = ib::opcode_traits(opcode);
	return traits.has(Traits::atomic_eth) || traits.has(Traits::masked_atomic_eth);
}

/*
 * IBA 9.7.4.1.6: all packets of a message except the last are full, and the last one is not empty.
 */
bool length_fits(Traits traits, std::uint32_t bytes, unsigned mtu)
{
	if (!traits.has(Traits::last))
		return bytes == mtu;
	return bytes <= mtu && (traits.has(Traits::first) || bytes > 0);
}

} // namespace

Responder::Responder(Engine &engine)
    : engine_(engine), mover_(engine.card().memory, engine.leases())
{
}

void Responder::start(Qp &qp)
{
	qp.receive.expected = Psn(qp.pair.initial_receive_psn);
}

void Responder::request(Qp &qp, fabric::Packet &packet)
{
	ResponderState &r = qp.receive;
	/* Skip packets of the run that were received before. */
	while (packet.packets() > 1 && Psn(packet.bth().psn()).before(r.expected))
		packet.take_first();
	const packet::Headers headers = packet.parse();
	/* IBA 11.6.3: the first packet establishes the connection. */
	if (qp.pair.state == QpState::rtr && !r.established) {
		r.established = true;
		engine_.raise(qp, Event::communication_established);
	}
	if (qp.pair.service == ServiceType::uc) {
		unreliable_request(qp, headers, packet);
		return;
	}
	if (!in_sequence(qp, headers))
		return;
	Verdict verdict = execute(qp, headers, packet);
	if (verdict != Verdict::accepted) {
		refuse(qp, verdict);
		return;
	}
	r.nak_sent = false;
	if (headers.bth.ack_request() && !is_atomic(headers.bth.opcode) &&
	    !ib::opcode_traits(headers.bth.opcode).has(Traits::response) &&
	    ib::opcode_operation(headers.bth.opcode) != ib::Operation::read_request)
		r.ack = ResponderState::Ack{r.expected - 1, kAckSyndrome};
	if (r.ack || !r.responses.empty())
		engine_.schedule(qp);
}

/*
 * Returns true if the packet is the expected one. Otherwise sends the response, if one is needed.
 */
bool Responder::in_sequence(Qp &qp, const packet::Headers &headers)
{
	ResponderState &r = qp.receive;
	auto ahead = Psn(headers.bth.psn()).distance_from(r.expected);
	if (ahead == 0)
		return true;
	if (ahead < 0) {
		duplicate(qp, headers);
		return false;
	}
	/* A packet is missing: send one NAK for it (IBA 9.7.5.2.8). */
	if (!r.nak_sent) {
		engine_.card().diagnostics.rq_out_of_sequence++;
		nak(qp, nak_syndrome(ib::Aeth::psn_sequence));
	}
	return false;
}

/* IBA 9.7.5.1.4: a duplicate request gets its response, but is not executed again. */
void Responder::duplicate(Qp &qp, const packet::Headers &headers)
{
	ResponderState &r = qp.receive;
	Psn psn(headers.bth.psn());
	bool is_read = ib::opcode_operation(headers.bth.opcode) == ib::Operation::read_request &&
		       !is_atomic(headers.bth.opcode);
	if (!is_read && !is_atomic(headers.bth.opcode)) {
		if (!r.ack)
			r.ack = ResponderState::Ack{r.expected - 1, kAckSyndrome};
		engine_.schedule(qp);
		return;
	}
	/* Limit the responses, however often the peer repeats its requests. */
	if (r.responses.size() >= 2u * qp.responses_max())
		return;
	for (const DoneRequest &done : r.done) {
		auto from = psn.distance_from(done.first);
		if (from < 0 || static_cast<std::uint32_t>(from) >= done.packets ||
		    done.is_read != is_read)
			continue;
		Response response;
		response.is_read = is_read;
		response.repeated = true;
		response.next = psn;
		response.packets = 1;
		response.original = done.original;
		response.msn = done.msn;
		if (is_read) {
			response.address = headers.reth.address;
			response.rkey = headers.reth.rkey;
			response.length = headers.reth.length;
			response.packets = read_packets(qp, headers.reth.length);
			if (response.packets > done.packets - static_cast<std::uint32_t>(from))
				return;
			response.pd = domain_of(qp, headers);
			if (mover_.probe(remote_use(qp, response.rkey, KeyAccess::remote_read,
						    response.pd),
					 response.address, response.length) != MemoryError::none)
				return;
		}
		/* If a response to this request is already being sent, restart it. */
		std::erase_if(r.responses, [&](const Response &other) {
			return other.is_read == is_read &&
			       other.next.distance_from(done.first) >= 0 &&
			       static_cast<std::uint32_t>(other.next.distance_from(done.first)) <
				       done.packets;
		});
		r.responses.push_back(response);
		engine_.schedule(qp);
		return;
	}
}

Responder::Verdict Responder::execute(Qp &qp, const packet::Headers &headers,
				      const fabric::Packet &packet)
{
	ResponderState &r = qp.receive;
	auto traits = ib::opcode_traits(headers.bth.opcode);
	if (qp.pair.service == ServiceType::xrc && !xrc_queue(qp, headers))
		return Verdict::invalid_request;
	if (is_atomic(headers.bth.opcode))
		return r.message == Message::none ? atomic(qp, headers) : Verdict::invalid_request;
	if (ib::opcode_operation(headers.bth.opcode) == ib::Operation::read_request)
		return r.message == Message::none ? read(qp, headers) : Verdict::invalid_request;

	/*
	 * IBA 9.7.4.1.2: the packets of a message follow each other, without packets of another
	 * message.
	 */
	Message kind = is_send(headers.bth.opcode)    ? Message::send
		       : is_write(headers.bth.opcode) ? Message::write
						      : Message::none;
	if (kind == Message::none || !length_fits(traits, packet.packet_bytes(), qp.mtu()))
		return Verdict::invalid_request;
	if (r.message != (traits.has(Traits::first) ? Message::none : kind))
		return Verdict::invalid_request;

	Verdict verdict =
		kind == Message::send ? send(qp, headers, packet) : write(qp, headers, packet);
	if (verdict != Verdict::accepted)
		return verdict;
	r.expected += packet.packets();
	r.message = traits.has(Traits::last) ? Message::none : kind;
	return verdict;
}

SharedReceiveQueue *Responder::xrc_queue(const Qp &qp, const packet::Headers &headers) const
{
	SharedReceiveQueue *srq = engine_.card().work.shared_receive_queue(headers.xrceth.srq);
	return srq && srq->xrc_domain() == qp.pair.xrc_domain ? srq : nullptr;
}

/*
 * Returns the protection domain for the memory of a message. An XRC target QP has no domain, so the
 * one of the SRQ is used, which every message specifies (IBA A14).
 */
std::uint32_t Responder::domain_of(const Qp &qp, const packet::Headers &headers) const
{
	if (qp.pair.service != ServiceType::xrc)
		return qp.pair.pd;
	const SharedReceiveQueue *srq = xrc_queue(qp, headers);
	return srq ? srq->pd() : qp.pair.pd;
}

KeyUse Responder::remote_use(const Qp &qp, std::uint32_t key, KeyAccess access,
			     std::uint32_t pd) const
{
	KeyUse use = qp.key_use(key, access);
	use.pd = pd;
	return use;
}

/* Takes a receive WQE for a message that needs one at its begin or its end. */
Responder::Verdict Responder::take(Qp &qp, const packet::Headers &headers)
{
	SharedReceiveQueue *xrc =
		qp.pair.service == ServiceType::xrc ? xrc_queue(qp, headers) : nullptr;
	switch (take_receive(engine_.card(), qp, xrc, qp.receive.receive)) {
	case Taken::yes:
		return Verdict::accepted;
	case Taken::none:
		return Verdict::not_ready;
	case Taken::broken:
		break;
	}
	return Verdict::operational_error;
}

Responder::Verdict Responder::send(Qp &qp, const packet::Headers &headers,
				   const fabric::Packet &packet)
{
	ResponderState &r = qp.receive;
	const fabric::Payload &payload = packet.payload();
	auto traits = ib::opcode_traits(headers.bth.opcode);
	/* UC reuses a WQE of an incomplete message. */
	if (traits.has(Traits::first) && !r.receive.taken) {
		Verdict verdict = take(qp, headers);
		if (verdict != Verdict::accepted)
			return verdict;
	}
	if (traits.has(Traits::first))
		r.receive.used = 0;
	if (payload.size() > r.receive.room - r.receive.used)
		return Verdict::receive_failed_length;
	std::array<std::byte, kCompletionDataMax> bytes;
	std::span<const std::byte> data;
	if (traits.has(Traits::first) && traits.has(Traits::last) &&
	    payload.size() <= qp.pair.inline_receive) {
		const auto room = std::span(bytes).first(payload.size());
		if (payload.copy_to(room) != room.size())
			return Verdict::lost;
		data = room;
	} else {
		KeyUse user = qp.key_use(0, KeyAccess::local_write);
		user.pd = r.receive.pd;
		switch (mover_.scatter(r.receive.pieces, r.receive.used, payload, user)) {
		case MemoryError::none:
			break;
		case MemoryError::taken_back:
			return Verdict::lost;
		default:
			return Verdict::receive_failed_protection;
		}
	}
	r.receive.used += payload.size();
	if (!traits.has(Traits::last))
		return Verdict::accepted;

	auto opcode = ReceiveOpcode::send;
	if (traits.has(Traits::immdt))
		opcode = ReceiveOpcode::send_imm;
	if (traits.has(Traits::ieth)) {
		opcode = ReceiveOpcode::send_invalidate;
		switch (engine_.card().memory.invalidate(headers.ieth.rkey, domain_of(qp, headers),
							 qp.pair.qpn, true)) {
		case MemoryError::none:
			break;
		case MemoryError::bad_request:
			return Verdict::receive_failed_memory_management;
		default:
			return Verdict::receive_failed_remote_access;
		}
		engine_.key_gone(headers.ieth.rkey.value() >> 8);
	}
	r.msn = (r.msn + 1) & Psn::kMask;
	complete(qp, headers, opcode, static_cast<std::uint32_t>(r.receive.used), data);
	return Verdict::accepted;
}

/*
 * Handles a write that is refused. The receive that a write with immediate data would use, if there
 * is one, completes with an error. On UC, the message is dropped and uses no receive.
 */
Responder::Verdict Responder::write_refused(Qp &qp, const packet::Headers &headers)
{
	if (!ib::opcode_traits(headers.bth.opcode).has(Traits::immdt) || !qp.is_connected())
		return Verdict::access_error;
	if (!qp.receive.receive.taken && take(qp, headers) != Verdict::accepted)
		return Verdict::access_error;
	return Verdict::receive_failed_local_access;
}

Responder::Verdict Responder::write(Qp &qp, const packet::Headers &headers,
				    const fabric::Packet &packet)
{
	ResponderState &r = qp.receive;
	const fabric::Payload &payload = packet.payload();
	auto traits = ib::opcode_traits(headers.bth.opcode);
	if (traits.has(Traits::first)) {
		std::uint32_t length = headers.reth.length;
		/* The length must match the packets that follow (IBA 9.7.4.1.6). */
		if (traits.has(Traits::last) ? length != payload.size() : length <= payload.size())
			return Verdict::invalid_request;
		if (!qp.pair.remote_write || length > kMessageMax)
			return Verdict::invalid_request;
		if (mover_.probe(remote_use(qp, headers.reth.rkey, KeyAccess::remote_write,
					    domain_of(qp, headers)),
				 headers.reth.address, length) != MemoryError::none)
			return write_refused(qp, headers);
		r.write_address = headers.reth.address;
		r.write_rkey = headers.reth.rkey;
		r.write_left = r.write_length = length;
	}
	if (payload.size() > r.write_left ||
	    (traits.has(Traits::last) && payload.size() != r.write_left))
		return Verdict::invalid_request;
	/* Take the receive before anything is written, so that the packet can be repeated. */
	if (traits.has(Traits::immdt) && !r.receive.taken) {
		Verdict verdict = take(qp, headers);
		if (verdict != Verdict::accepted)
			return verdict;
	}
	switch (mover_.write(
		remote_use(qp, r.write_rkey, KeyAccess::remote_write, domain_of(qp, headers)),
		r.write_address, payload)) {
	case MemoryError::none:
		break;
	case MemoryError::taken_back:
		return Verdict::lost;
	default:
		return write_refused(qp, headers);
	}
	r.write_address += payload.size();
	r.write_left -= payload.size();
	if (traits.has(Traits::last)) {
		r.msn = (r.msn + 1) & Psn::kMask;
		if (traits.has(Traits::immdt))
			complete(qp, headers, ReceiveOpcode::rdma_write_imm, r.write_length);
	}
	return Verdict::accepted;
}

std::uint32_t Responder::read_packets(const Qp &qp, std::uint32_t length) const
{
	return std::max(
		1u, static_cast<std::uint32_t>((std::uint64_t{length} + qp.mtu() - 1) / qp.mtu()));
}

/*
 * Returns true if another read or atomic may be answered (IBA 9.7.4.1.7). A requester that sends
 * another one has received all earlier responses, so responses that are kept for repetition are
 * dropped.
 */
bool Responder::has_resources(Qp &qp)
{
	auto &responses = qp.receive.responses;
	if (responses.size() >= qp.responses_max())
		std::erase_if(responses, [](const Response &each) { return each.repeated; });
	return responses.size() < qp.responses_max();
}

Responder::Verdict Responder::read(Qp &qp, const packet::Headers &headers)
{
	ResponderState &r = qp.receive;
	if (!qp.pair.remote_read || headers.reth.length > kMessageMax || !has_resources(qp))
		return Verdict::invalid_request;
	std::uint32_t packets = read_packets(qp, headers.reth.length);
	if (packets >= Psn::kWindow)
		return Verdict::invalid_request;
	const std::uint32_t pd = domain_of(qp, headers);
	if (mover_.probe(remote_use(qp, headers.reth.rkey, KeyAccess::remote_read, pd),
			 headers.reth.address, headers.reth.length) != MemoryError::none)
		return Verdict::access_error;
	r.msn = (r.msn + 1) & Psn::kMask;
	Response response;
	response.is_read = true;
	response.next = r.expected;
	response.packets = packets;
	response.address = headers.reth.address;
	response.rkey = headers.reth.rkey;
	response.pd = pd;
	response.length = headers.reth.length;
	response.msn = r.msn;
	remember(qp, {r.expected, packets, true, 0, r.msn});
	r.responses.push_back(response);
	r.expected += packets;
	return Verdict::accepted;
}

Responder::Verdict Responder::atomic(Qp &qp, const packet::Headers &headers)
{
	ResponderState &r = qp.receive;
	if (!qp.pair.remote_atomic)
		return Verdict::invalid_request;
	if (headers.atomic.address % sizeof(std::uint64_t) != 0 || !has_resources(qp))
		return Verdict::invalid_request;
	auto word =
		mover_.word_address(remote_use(qp, headers.atomic.rkey, KeyAccess::remote_atomic,
					       domain_of(qp, headers)),
				    headers.atomic.address);
	if (!word)
		return Verdict::access_error;
	auto original = execute_atomic(*engine_.card().memory.memory(), *word, headers,
				       engine_.card().big_endian_host);
	if (!original)
		return Verdict::access_error;
	r.msn = (r.msn + 1) & Psn::kMask;
	Response response;
	response.next = r.expected;
	response.packets = 1;
	response.original = *original;
	response.msn = r.msn;
	remember(qp, {r.expected, 1, false, *original, r.msn});
	r.responses.push_back(response);
	++r.expected;
	return Verdict::accepted;
}

void Responder::remember(Qp &qp, const DoneRequest &done)
{
	qp.receive.done.push_back(done);
	while (qp.receive.done.size() > qp.responses_max())
		qp.receive.done.pop_front();
}

void Responder::complete(Qp &qp, const packet::Headers &headers, ReceiveOpcode opcode,
			 std::uint32_t byte_count, std::span<const std::byte> data)
{
	ReceiveDone report;
	report.data = data;
	report.opcode = opcode;
	report.immediate = opcode == ReceiveOpcode::send_invalidate ? headers.ieth.rkey.value()
								    : headers.immdt.value.value();
	report.byte_count = byte_count;
	report.source_qpn = qp.pair.remote_qpn;
	report.source_lid = headers.lrh.slid;
	report.sl = headers.lrh.sl();
	report.solicited = headers.bth.solicited();
	qp.receive.receive.taken = false;
	engine_.completions().received(qp, qp.receive.receive, report);
}

/* Queues a NAK for the expected packet. */
void Responder::nak(Qp &qp, std::uint8_t syndrome)
{
	qp.receive.nak_sent = true;
	qp.receive.ack = ResponderState::Ack{qp.receive.expected, syndrome};
	engine_.schedule(qp);
}

void Responder::refuse(Qp &qp, Verdict verdict)
{
	ResponderState &r = qp.receive;
	Diagnostics &counters = engine_.card().diagnostics;
	auto fail_receive = [&](Syndrome syndrome) {
		r.receive.taken = false;
		engine_.completions().receive_failed(qp, r.receive, syndrome);
	};
	switch (verdict) {
	case Verdict::accepted:
	case Verdict::lost:
		return;
	case Verdict::not_ready:
		/* Send only one NAK, because later packets are out of sequence (IBA 9.7.5.2.8). */
		if (r.nak_sent && r.ack)
			return;
		counters.rq_rnr_naks++;
		nak(qp, ib::Aeth::make_syndrome(ib::Aeth::Kind::rnr_nak, qp.pair.min_rnr_timer));
		return;
	case Verdict::invalid_request:
		nak(qp, nak_syndrome(ib::Aeth::invalid_request));
		/*
		 * The error is reported by the receive of the current message if there is one, and
		 * otherwise by an event (class C).
		 */
		if (r.receive.taken) {
			fail_receive(Syndrome::remote_invalid_request);
			engine_.fail(qp);
			return;
		}
		counters.rq_remote_invalid_request++;
		engine_.fail(qp, Event::wq_invalid_request);
		return;
	case Verdict::access_error:
		counters.rq_remote_access++;
		nak(qp, nak_syndrome(ib::Aeth::remote_access));
		engine_.fail(qp, Event::wq_access_violation);
		return;
	case Verdict::operational_error:
		nak(qp, nak_syndrome(ib::Aeth::remote_operational));
		engine_.fail(qp, Event::wq_catastrophic);
		return;
	case Verdict::receive_failed_length:
		nak(qp, nak_syndrome(ib::Aeth::invalid_request));
		fail_receive(Syndrome::local_length);
		engine_.fail(qp);
		return;
	case Verdict::receive_failed_protection:
		nak(qp, nak_syndrome(ib::Aeth::remote_operational));
		fail_receive(Syndrome::local_protection);
		engine_.fail(qp);
		return;
	case Verdict::receive_failed_local_access:
		nak(qp, nak_syndrome(ib::Aeth::remote_access));
		fail_receive(Syndrome::local_access);
		engine_.fail(qp);
		return;
	case Verdict::receive_failed_remote_access:
		nak(qp, nak_syndrome(ib::Aeth::remote_access));
		fail_receive(Syndrome::remote_access);
		engine_.fail(qp);
		return;
	case Verdict::receive_failed_memory_management:
		fail_receive(Syndrome::window_bind);
		engine_.fail(qp);
		return;
	}
}

/* IBA 9.8.3.1.2: an invalid packet and the rest of its message are dropped. */
void Responder::unreliable_request(Qp &qp, const packet::Headers &headers,
				   const fabric::Packet &packet)
{
	ResponderState &r = qp.receive;
	auto traits = ib::opcode_traits(headers.bth.opcode);
	Psn psn(headers.bth.psn());
	if (psn != r.expected)
		r.discard = true;
	if (traits.has(Traits::first)) {
		r.discard = false;
		r.message = Message::none;
	}
	r.expected = psn;
	if (r.discard) {
		r.expected += packet.packets();
		return;
	}
	Verdict verdict = execute(qp, headers, packet);
	switch (verdict) {
	case Verdict::accepted:
		return;
	case Verdict::receive_failed_length:
	case Verdict::receive_failed_protection:
	case Verdict::operational_error:
		refuse(qp, verdict);
		qp.receive.ack.reset();
		return;
	default:
		r.discard = true;
		r.message = Message::none;
		r.expected += packet.packets();
		return;
	}
}

bool Responder::advance(Qp &qp, unsigned budget)
{
	ResponderState &r = qp.receive;
	for (; budget > 0; budget--) {
		if (qp.waiting)
			return false;
		if (!r.responses.empty()) {
			Response &response = r.responses.front();
			send_response(qp, response);
			if (!r.responses.empty() && r.responses.front().packets == 0)
				r.responses.pop_front();
		} else if (r.ack) {
			send_acknowledge(qp);
		} else {
			return false;
		}
	}
	return !r.responses.empty() || r.ack;
}

/*
 * A guest may see the completion of a request, and close the QP, before the card has sent the
 * acknowledgement. Without the acknowledgement, the peer would repeat the request to a QP that no
 * longer responds, until no retries are left: 34 s with the values that the CM uses.
 */
void Responder::leave(Qp &qp)
{
	ResponderState &r = qp.receive;
	if (r.ack && r.responses.empty() && !qp.waiting)
		send_acknowledge(qp);
	r.responses.clear();
	r.ack.reset();
}

packet::Headers Responder::headers_for(const Qp &qp, ib::Operation operation, Psn psn) const
{
	packet::Headers headers;
	address_connected(*engine_.card().port(qp.pair.path.port), qp.pair.path, headers);
	auto transport =
		qp.pair.service == ServiceType::xrc ? ib::Transport::xrc : ib::Transport::rc;
	headers.bth.opcode = ib::opcode(transport, operation);
	headers.bth.set_dest_qp(qp.pair.remote_qpn);
	headers.bth.set_migrated(true);
	headers.bth.set_psn(psn.value());
	headers.aeth = {kAckSyndrome, qp.receive.msn};
	return headers;
}

void Responder::transmit(Qp &qp, const packet::Headers &headers, fabric::Payload payload,
			 unsigned packets)
{
	auto packet = fabric::Packet::make_run(headers, std::move(payload), packets);
	if (packet)
		engine_.emit(qp, std::move(*packet));
}

void Responder::send_acknowledge(Qp &qp)
{
	auto ack = *std::exchange(qp.receive.ack, std::nullopt);
	packet::Headers headers = headers_for(qp, ib::Operation::ack, ack.psn);
	headers.aeth.syndrome = ack.syndrome;
	transmit(qp, headers, {});
}

void Responder::send_response(Qp &qp, Response &response)
{
	using Op = ib::Operation;
	if (!response.is_read) {
		packet::Headers headers = headers_for(qp, Op::atomic_ack, response.next);
		headers.aeth.msn = response.msn;
		headers.atomic_ack.original = response.original;
		response.packets = 0;
		transmit(qp, headers, {});
		return;
	}
	bool last = response.packets == 1;
	const unsigned packets = last ? 1 : run_length(response.packets - 1, qp.mtu());
	auto bytes = static_cast<std::uint32_t>(
		std::min<std::uint64_t>(std::uint64_t{packets} * qp.mtu(), response.length));
	fabric::Payload payload;
	if (mover_.refer(qp, remote_use(qp, response.rkey, KeyAccess::remote_read, response.pd),
			 response.address, bytes, payload) != MemoryError::none) {
		/* The key was invalidated after the request was accepted. */
		qp.receive.responses.clear();
		qp.receive.ack =
			ResponderState::Ack{response.next, nak_syndrome(ib::Aeth::remote_access)};
		engine_.fail(qp, Event::wq_access_violation);
		return;
	}
	Op operation = response.first ? (last ? Op::read_response_only : Op::read_response_first)
				      : (last ? Op::read_response_last : Op::read_response_middle);
	packet::Headers headers = headers_for(qp, operation, response.next);
	headers.aeth.msn = response.msn;
	response.first = false;
	response.address += bytes;
	response.length -= bytes;
	response.packets -= packets;
	response.next += packets;
	transmit(qp, headers, std::move(payload), packets);
}

bool Responder::flush(Qp &qp, unsigned budget)
{
	ReceiveWork &work = qp.receive.receive;
	if (work.taken) {
		work.taken = false;
		engine_.completions().receive_failed(qp, work, Syndrome::flushed);
	}
	qp.receive.message = Message::none;
	/* Receives of an SRQ are not flushed. */
	if (qp.pair.uses_srq || !qp.pair.has_receive_queue)
		return false;
	for (; budget > 0; budget--) {
		if (take_receive(engine_.card(), qp, nullptr, work) != Taken::yes && !work.taken)
			return false;
		work.taken = false;
		engine_.completions().receive_failed(qp, work, Syndrome::flushed);
	}
	return true;
}

} // namespace weft::hca::transport
