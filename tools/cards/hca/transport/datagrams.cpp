// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/datagrams.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cards/hca/transport/addressing.hpp"
#include "cards/hca/transport/engine.hpp"
#include "cards/hca/transport/ip_offload.hpp"
#include "cards/hca/transport/work_queues.hpp"

namespace weft::hca::transport
{

namespace
{

/* Bytes that precede the payload in the receive buffer of a datagram QP: space for the GRH. */
constexpr unsigned kGrhRoom = 40;
/* Maximum size of the packet that a special QP's WQE may gather. */
constexpr std::uint64_t kWholePacketMax = ib::headers_max + ib::payload_max + 3 + ib::icrc_bytes;
/* Maximum size of the data of one large send. */
constexpr std::uint64_t kLargeSendMax = 1 << 18;

} // namespace

Datagrams::Datagrams(Engine &engine)
    : engine_(engine), mover_(engine.card().memory, engine.leases())
{
}

bool Datagrams::advance(Qp &qp, unsigned budget)
{
	for (; budget > 0; budget--) {
		if (qp.waiting)
			return false;
		/* Continue a large send that has begun, even if the queue is draining. */
		Step step = Step::nothing_posted;
		if (qp.send.large)
			step = send_segment(qp);
		else if (qp.pair.state == QpState::rts)
			step = take_next(qp);
		if (step != Step::done)
			return false;
	}
	return true;
}

/* Takes the next posted request, and sends at most one packet of it. */
Datagrams::Step Datagrams::take_next(Qp &qp)
{
	switch (take_send(engine_.card(), qp, work_)) {
	case Taken::none:
		return Step::nothing_posted;
	case Taken::broken:
		engine_.fail(qp, Event::wq_catastrophic);
		return Step::failed;
	case Taken::yes:
		break;
	}
	Syndrome syndrome = work_.failure;
	if (syndrome == Syndrome::none && work_.request.opcode == SendOpcode::lso) {
		syndrome = begin_large(qp);
		if (syndrome == Syndrome::none)
			return Step::done;
	} else if (syndrome == Syndrome::none && !work_.request.is_local()) {
		syndrome = qp.pair.service == ServiceType::whole_packet
				   ? send_whole(qp, work_.request)
				   : send(qp, work_.request);
	}
	if (syndrome != Syndrome::none) {
		fail_send(qp, work_.index, syndrome);
		return Step::failed;
	}
	engine_.completions().sent(qp, work_.request, work_.index);
	return Step::done;
}

void Datagrams::fail_send(Qp &qp, std::uint16_t index, Syndrome syndrome)
{
	engine_.completions().send_failed(qp, index, syndrome);
	engine_.stop_send_queue(qp);
}

/*
 * Transmits a packet. Ordinary QPs may not send on VL 15, whatever the SL-to-VL tables contain, so
 * such packets are dropped.
 */
void Datagrams::transmit(Qp &qp, packet::Headers &headers, fabric::Payload payload)
{
	const bool may_manage =
		qp.pair.service == ServiceType::whole_packet || qp.pair.special == 0;
	if (headers.lrh.vl() == ib::vl_management && !may_manage)
		return;
	auto packet = fabric::Packet::make(headers, std::move(payload));
	if (packet)
		engine_.emit(qp, std::move(*packet));
}

/* Builds the headers of a datagram, except for the PSN. */
Syndrome Datagrams::address(const Qp &qp, const SendRequest &request,
			    packet::Headers &headers) const
{
	const CardPort *port = engine_.card().port(qp.pair.path.port);
	const auto &datagram = request.datagram;
	/*
	 * If the check is disabled, the QP's port is used, and the address vector's port is
	 * ignored.
	 */
	if (!port || (engine_.card().check_address_vectors &&
		      (datagram.pd != qp.pair.pd || datagram.port != qp.pair.path.port)))
		return Syndrome::local_qp_operation;

	if (qp.pair.special == 0)
		address_smp(*port, datagram, headers);
	else
		address_datagram(*port, datagram, qp.pair.path.pkey_index, headers);
	headers.bth.opcode =
		request.has_immediate() ? ib::opcode_ud_send_only_imm : ib::opcode_ud_send_only;
	headers.bth.set_dest_qp(datagram.qpn);
	headers.bth.set_solicited(request.solicited);
	std::uint32_t qkey = datagram.qkey;
	headers.deth.qkey = qkey & Datagram::kOwnQkey ? qp.pair.qkey : qkey;
	headers.deth.src_qp = qp.pair.datagram_source();
	headers.immdt.value = request.immediate;
	return Syndrome::none;
}

unsigned Datagrams::mtu(const Qp &qp) const
{
	const CardPort *port = engine_.card().port(qp.pair.path.port);
	const unsigned bytes = port ? ib::mtu_bytes(port->mtu()) : 0;
	return bytes != 0 ? bytes : unsigned{ib::payload_max};
}

Syndrome Datagrams::send(Qp &qp, const SendRequest &request)
{
	packet::Headers headers;
	if (Syndrome syndrome = address(qp, request, headers); syndrome != Syndrome::none)
		return syndrome;
	if (request.length > mtu(qp))
		return Syndrome::local_length;

	/* The data is copied, because the request completes before the packet has arrived. */
	OwnedBytes bytes = OwnedBytes::allocate(request.length);
	if (mover_.gather(request, 0, qp.key_use(0, KeyAccess::local_read), bytes.span()) !=
	    MemoryError::none)
		return Syndrome::local_protection;
	if (request.ip_checksum || request.l4_checksum)
		fill_checksums(bytes.span(), request.ip_checksum, request.l4_checksum);
	headers.bth.set_psn(qp.send.psn.value());
	++qp.send.psn;
	transmit(qp, headers, bytes.payload());
	return Syndrome::none;
}

/* Makes the request that was just taken the QP's current work. Each step sends one segment. */
Syndrome Datagrams::begin_large(Qp &qp)
{
	const SendRequest &taken = work_.request;
	if (taken.lso_header.size() + std::min<std::uint64_t>(taken.mss, taken.length) > mtu(qp) ||
	    taken.length > kLargeSendMax)
		return Syndrome::local_length;
	const SendRequest &request =
		engine_.requester()
			.hold(qp, std::make_unique<SendWork>(std::exchange(work_, {})))
			.request;
	qp.send.large.emplace(request.lso_header, request.length, request.mss, request.ip_checksum,
			      request.l4_checksum);
	return Syndrome::none;
}

Datagrams::Step Datagrams::send_segment(Qp &qp)
{
	LargeSend &large = *qp.send.large;
	const SendRequest &request = qp.send.work.front()->request;
	packet::Headers headers;
	Syndrome syndrome = address(qp, request, headers);
	if (syndrome == Syndrome::none) {
		OwnedBytes bytes = OwnedBytes::allocate(large.size());
		if (mover_.gather(request, large.offset(), qp.key_use(0, KeyAccess::local_read),
				  bytes.span().subspan(large.header_bytes())) !=
		    MemoryError::none) {
			syndrome = Syndrome::local_protection;
		} else {
			large.finish(bytes.span());
			headers.bth.set_psn(qp.send.psn.value());
			++qp.send.psn;
			transmit(qp, headers, bytes.payload());
		}
	}
	if (syndrome == Syndrome::none && !large.done())
		return Step::done;
	qp.send.large.reset();
	const auto work = engine_.requester().release(qp);
	if (syndrome != Syndrome::none) {
		fail_send(qp, work->index, syndrome);
		return Step::failed;
	}
	engine_.completions().sent(qp, work->request, work->index);
	return Step::done;
}

/*
 * Sends a request whose data is the packet from LRH to ICRC. The card sets the source LID and the
 * CRCs.
 */
Syndrome Datagrams::send_whole(Qp &qp, const SendRequest &request)
{
	const CardPort *port = engine_.card().port(qp.pair.path.port);
	if (!port)
		return Syndrome::local_qp_operation;
	if (request.length > kWholePacketMax || request.length <= ib::icrc_bytes)
		return Syndrome::local_length;
	OwnedBytes bytes = OwnedBytes::allocate(request.length);
	if (mover_.gather(request, 0, qp.key_use(0, KeyAccess::local_read), bytes.span()) !=
	    MemoryError::none)
		return Syndrome::local_protection;

	packet::Headers headers;
	packet::Layout layout;
	auto *raw = reinterpret_cast<const std::uint8_t *>(bytes.data.get());
	if (packet::parse(raw, static_cast<unsigned>(bytes.size), static_cast<unsigned>(bytes.size),
			  headers, layout) != packet::Error::none)
		return Syndrome::local_qp_operation;
	/*
	 * Special QPs send datagrams only. An acknowledgement, for example, could be taken for that
	 * of another QP.
	 */
	if (!ib::opcode_traits(headers.bth.opcode).has(ib::OpcodeTraits::deth))
		return Syndrome::local_qp_operation;
	ib::Lid path_bits = static_cast<ib::Lid>(headers.lrh.slid & ((1u << port->lmc()) - 1));
	headers.lrh.slid = request.permissive_source
				   ? ib::lid_permissive
				   : static_cast<ib::Lid>(port->lid() | path_bits);
	fabric::Payload payload;
	payload.append({bytes.data.get() + layout.header_bytes, layout.payload_bytes, bytes.data});
	transmit(qp, headers, std::move(payload));
	return Syndrome::none;
}

/*
 * Handles a datagram that is longer than the posted receive. Every sender that knows the Q_Key can
 * send one, and the Q_Key of QP1 is public. It is therefore not an error of the QP, which keeps its
 * state (IBA 9.9.3.1, class D), and the receive is used for the next datagram. If the receive came
 * from an SRQ, other QPs may have taken later receives already, so it completes with an error
 * (class E).
 */
void Datagrams::too_long(Qp &qp, std::uint16_t due)
{
	engine_.card().diagnostics.rq_ud_discarded++;
	receive_.taken = false;
	if (qp.receive.next_wqe != due)
		qp.receive.next_wqe = due;
	else
		engine_.completions().receive_failed(qp, receive_, Syndrome::local_length);
}

void Datagrams::receive(Qp &qp, unsigned port_number, const fabric::Packet &packet)
{
	const int special = qp.pair.special;
	Context &card = engine_.card();
	CardPort &port = *card.port(port_number);
	const packet::Headers headers = packet.parse();
	auto traits = ib::opcode_traits(headers.bth.opcode);
	if (!traits.has(ib::OpcodeTraits::deth))
		return;

	/* IBA 9.6.1.1 and 10.9: QP0 has no P_Key, and QP1 accepts every P_Key of the port. */
	int pkey_index = qp.pair.path.pkey_index;
	if (special == 0) {
		pkey_index = 0;
	} else if (special == 1) {
		pkey_index = port.find_pkey(headers.bth.pkey);
		if (pkey_index < 0) {
			engine_.refuse_pkey(port, headers);
			return;
		}
	} else if (!ib::pkey_match(headers.bth.pkey,
				   port.pkey(static_cast<unsigned>(pkey_index)))) {
		engine_.refuse_pkey(port, headers);
		return;
	}
	if (special != 0 && headers.deth.qkey != qp.pair.qkey) {
		engine_.refuse_qkey(port, headers);
		return;
	}

	const fabric::Payload &payload = packet.payload();
	const std::uint64_t total = std::uint64_t{kGrhRoom} + payload.size();
	std::array<std::byte, ib::payload_max> flat;
	std::span<const std::byte> whole;
	if (qp.pair.steered || (special < 0 && card.ipoib_checksum)) {
		whole = payload.together();
		if (whole.empty())
			whole = std::span(flat).first(payload.copy_to(flat));
	}
	const std::uint16_t due = qp.receive.next_wqe;
	switch (qp.pair.steered ? card.work.take_datagram(qp.pair, whole, total, receive_)
				: take_receive(card, qp, nullptr, receive_)) {
	case Taken::none:
		card.diagnostics.rq_ud_discarded++;
		return;
	case Taken::broken:
		/*
		 * A receive that cannot be read was already removed from the queue, so it must
		 * complete.
		 */
		if (std::exchange(receive_.taken, false))
			engine_.completions().receive_failed(qp, receive_, Syndrome::flushed);
		engine_.fail(qp, Event::wq_catastrophic);
		return;
	case Taken::yes:
		break;
	}
	if (total > receive_.room) {
		too_long(qp, due);
		return;
	}
	KeyUse user = qp.key_use(0, KeyAccess::local_write);
	user.pd = receive_.pd;
	Syndrome syndrome = Syndrome::none;
	if (headers.has_grh &&
	    mover_.scatter(receive_.pieces, 0, std::as_bytes(std::span(&headers.grh, 1)), user) !=
		    MemoryError::none)
		syndrome = Syndrome::local_protection;
	else if (mover_.scatter(receive_.pieces, kGrhRoom, payload, user) != MemoryError::none)
		syndrome = Syndrome::local_protection;
	receive_.taken = false;
	if (syndrome != Syndrome::none) {
		engine_.completions().receive_failed(qp, receive_, syndrome);
		if (qp.pair.steered)
			card.work.stop_receives(qp.pair, receive_);
		else
			engine_.fail(qp);
		return;
	}

	ReceiveDone report;
	bool immediate = traits.has(ib::OpcodeTraits::immdt);
	report.opcode = immediate ? ReceiveOpcode::send_imm : ReceiveOpcode::send;
	report.immediate =
		immediate ? headers.immdt.value.value() : static_cast<std::uint32_t>(pkey_index);
	report.byte_count = static_cast<std::uint32_t>(total);
	report.source_qpn = headers.deth.src_qp;
	report.source_lid = headers.lrh.slid;
	report.pkey = headers.bth.pkey;
	report.sl = headers.lrh.sl();
	if (ib::lid_is_unicast(headers.lrh.dlid))
		report.path_bits =
			static_cast<std::uint8_t>(headers.lrh.dlid & ((1u << port.lmc()) - 1));
	report.grh = headers.has_grh;
	report.solicited = headers.bth.solicited();
	if (special < 0 && card.ipoib_checksum)
		report.checksums = check_checksums(whole);
	engine_.completions().received(qp, receive_, report);
}

} // namespace weft::hca::transport
