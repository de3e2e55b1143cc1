// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/transport/datagrams.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "connectx/transport/addressing.hpp"
#include "connectx/transport/engine.hpp"
#include "connectx/transport/ip_offload.hpp"
#include "connectx/transport/work_queues.hpp"

namespace weft::connectx::transport
{

using hw::connectx::CqeReceiveOpcode;
using hw::connectx::MlxFlags;
using hw::connectx::WqeOpcode;

namespace
{

/* The longest packet that a special QP's WQE may gather. */
constexpr std::uint64_t whole_packet_max = ib::headers_max + ib::payload_max + 3 + ib::icrc_bytes;
/* The longest data of one large send. */
constexpr std::uint64_t large_send_max = 1 << 18;

} // namespace

Datagrams::Datagrams(Engine &engine) : engine_(engine), mover_(engine.card().memory) {}

bool Datagrams::advance(Qp &qp, unsigned budget)
{
	for (; budget > 0; budget--) {
		if (qp.pair.state != QpState::rts || !qp.outbox.empty())
			return false;
		switch (take_send(engine_.card(), qp, work_)) {
		case Taken::none:
			return false;
		case Taken::broken:
			engine_.fail(qp, EventType::wq_catastrophic);
			return false;
		case Taken::yes:
			break;
		}
		CqeSyndrome syndrome = work_.failure;
		if (syndrome == CqeSyndrome::none && !work_.request.is_local())
			syndrome = qp.pair.service == ServiceType::mlx
					   ? send_whole(qp, work_.request)
					   : send(qp, work_.request);
		if (syndrome != CqeSyndrome::none) {
			fail_send(qp, work_.index, syndrome);
			return false;
		}
		engine_.completions().sent(qp, work_.request, work_.index);
	}
	return true;
}

/* IBA 10.8.3.2: the send queue stops in the SQE state, receives go on. */
void Datagrams::fail_send(Qp &qp, std::uint16_t index, CqeSyndrome syndrome)
{
	engine_.completions().send_failed(qp, index, syndrome);
	qp.pair.state = QpState::sqer;
	engine_.schedule(qp);
}

void Datagrams::transmit(Qp &qp, const packet::Headers &headers, fabric::Payload payload)
{
	auto packet = fabric::Packet::make(headers, std::move(payload));
	if (packet)
		engine_.emit(qp, std::move(*packet));
}

CqeSyndrome Datagrams::send(Qp &qp, const SendRequest &request)
{
	const CardPort *port = engine_.card().port(qp.pair.path.port);
	const auto &datagram = request.datagram;
	/* With the check off the port is the QP's, and the vector's does not count. */
	if (!port || (engine_.card().check_address_vectors &&
		      (datagram.address.pd() != qp.pair.pd ||
		       datagram.address.port() != qp.pair.path.port)))
		return CqeSyndrome::local_qp_operation;

	packet::Headers headers;
	address_datagram(*port, datagram.address, qp.pair.path.pkey_index, headers);
	headers.bth.opcode =
		request.has_immediate() ? ib::opcode_ud_send_only_imm : ib::opcode_ud_send_only;
	headers.bth.set_dest_qp(datagram.qpn());
	headers.bth.set_solicited(request.solicited);
	/* Datagrams of ordinary QPs are no management traffic, whatever the tables say. */
	if (headers.lrh.vl() == ib::vl_management)
		return CqeSyndrome::none;
	std::uint32_t qkey = datagram.qkey;
	headers.deth.qkey = qkey & hw::connectx::WqeDatagram::own_qkey ? qp.pair.qkey : qkey;
	headers.deth.src_qp = qp.pair.qpn;
	headers.immdt.value = request.immediate;

	unsigned mtu = ib::mtu_bytes(port->mtu());
	if (mtu == 0)
		mtu = ib::payload_max;
	if (request.opcode == WqeOpcode::lso)
		return send_large(qp, request, headers, mtu);
	if (request.length > mtu)
		return CqeSyndrome::local_length;

	/* A copy: the request completes before the packet has arrived. */
	OwnedBytes bytes = OwnedBytes::allocate(request.length);
	if (mover_.gather(request, qp.key_use(0, KeyAccess::local_read), bytes.span()) !=
	    MemoryError::none)
		return CqeSyndrome::local_protection;
	if (request.ip_checksum || request.l4_checksum)
		fill_checksums(bytes.span(), request.ip_checksum, request.l4_checksum);
	headers.bth.set_psn(qp.send.psn.value());
	++qp.send.psn;
	transmit(qp, headers, bytes.payload());
	return CqeSyndrome::none;
}

CqeSyndrome Datagrams::send_large(Qp &qp, const SendRequest &request,
				  const packet::Headers &headers, unsigned mtu)
{
	if (request.lso_header.size() + std::min<std::uint64_t>(request.mss, request.length) >
		    mtu ||
	    request.length > large_send_max)
		return CqeSyndrome::local_length;
	std::vector<std::byte> data(request.length);
	if (mover_.gather(request, qp.key_use(0, KeyAccess::local_read), data) != MemoryError::none)
		return CqeSyndrome::local_protection;
	LargeSend segments(request.lso_header, data, request.mss, request.ip_checksum,
			   request.l4_checksum);
	while (segments.next(segment_)) {
		OwnedBytes bytes = OwnedBytes::allocate(segment_.size());
		std::memcpy(bytes.data.get(), segment_.data(), segment_.size());
		packet::Headers each = headers;
		each.bth.set_psn(qp.send.psn.value());
		++qp.send.psn;
		transmit(qp, each, bytes.payload());
	}
	return CqeSyndrome::none;
}

/* The gathered bytes are the packet, LRH to ICRC. The card supplies the source LID and the CRCs. */
CqeSyndrome Datagrams::send_whole(Qp &qp, const SendRequest &request)
{
	const CardPort *port = engine_.card().port(qp.pair.path.port);
	if (!port)
		return CqeSyndrome::local_qp_operation;
	if (request.length > whole_packet_max || request.length <= ib::icrc_bytes)
		return CqeSyndrome::local_length;
	OwnedBytes bytes = OwnedBytes::allocate(request.length);
	if (mover_.gather(request, qp.key_use(0, KeyAccess::local_read), bytes.span()) !=
	    MemoryError::none)
		return CqeSyndrome::local_protection;

	packet::Headers headers;
	packet::Layout layout;
	auto *raw = reinterpret_cast<const std::uint8_t *>(bytes.data.get());
	if (packet::parse(raw, static_cast<unsigned>(bytes.size), static_cast<unsigned>(bytes.size),
			  headers, layout) != packet::Error::none)
		return CqeSyndrome::local_qp_operation;
	MlxFlags flags{request.flags_word};
	ib::Lid path_bits = static_cast<ib::Lid>(headers.lrh.slid & ((1u << port->lmc()) - 1));
	headers.lrh.slid = flags.permissive_source()
				   ? ib::lid_permissive
				   : static_cast<ib::Lid>(port->lid() | path_bits);
	fabric::Payload payload;
	payload.append({bytes.data.get() + layout.header_bytes, layout.payload_bytes, bytes.data});
	transmit(qp, headers, std::move(payload));
	return CqeSyndrome::none;
}

void Datagrams::receive(Qp &qp, int special, unsigned port_number, const fabric::Packet &packet)
{
	CardContext &card = engine_.card();
	CardPort &port = *card.port(port_number);
	const packet::Headers headers = packet.parse();
	auto traits = ib::opcode_traits(headers.bth.opcode);
	if (!traits.has(ib::OpcodeTraits::deth))
		return;

	/* IBA 9.6.1.1 and 10.9: QP0 has no keys, QP1 takes any P_Key that the port has. */
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

	switch (take_receive(card, qp, nullptr, receive_)) {
	case Taken::none:
		card.diagnostics.rq_ud_discarded++;
		return;
	case Taken::broken:
		engine_.fail(qp, EventType::wq_catastrophic);
		return;
	case Taken::yes:
		break;
	}
	const fabric::Payload &payload = packet.payload();
	std::uint64_t total = std::uint64_t{hw::connectx::grh_room} + payload.size();
	KeyUse user = qp.key_use(0, KeyAccess::local_write);
	user.pd = receive_.pd;
	CqeSyndrome syndrome = CqeSyndrome::none;
	if (total > receive_.room)
		syndrome = CqeSyndrome::local_length;
	else if (headers.has_grh &&
		 mover_.scatter(receive_.pieces, 0, std::as_bytes(std::span(&headers.grh, 1)),
				user) != MemoryError::none)
		syndrome = CqeSyndrome::local_protection;
	else if (mover_.scatter(receive_.pieces, hw::connectx::grh_room, payload, user) !=
		 MemoryError::none)
		syndrome = CqeSyndrome::local_protection;
	receive_.taken = false;
	if (syndrome != CqeSyndrome::none) {
		engine_.completions().receive_failed(qp, receive_, syndrome);
		engine_.fail(qp);
		return;
	}

	ReceiveReport report;
	bool immediate = traits.has(ib::OpcodeTraits::immdt);
	report.opcode = immediate ? CqeReceiveOpcode::send_imm : CqeReceiveOpcode::send;
	report.immediate =
		immediate ? headers.immdt.value.value() : static_cast<std::uint32_t>(pkey_index);
	report.byte_count = static_cast<std::uint32_t>(total);
	report.source_qpn = headers.deth.src_qp;
	report.source_lid = headers.lrh.slid;
	report.sl = headers.lrh.sl();
	if (ib::lid_is_unicast(headers.lrh.dlid))
		report.path_bits =
			static_cast<std::uint8_t>(headers.lrh.dlid & ((1u << port.lmc()) - 1));
	report.grh = headers.has_grh;
	report.solicited = headers.bth.solicited();
	if (special < 0 && engine_.card().ipoib_checksum) {
		std::array<std::byte, ib::payload_max> flat;
		auto bytes =
			std::span(flat).first(std::min<std::size_t>(payload.size(), flat.size()));
		payload.copy_to(bytes);
		ChecksumStatus sums = check_checksums(bytes);
		report.status = sums.status;
		report.checksum_flags = sums.flags;
		report.checksum = sums.checksum;
	}
	engine_.completions().received(qp, receive_, report);
}

} // namespace weft::connectx::transport
