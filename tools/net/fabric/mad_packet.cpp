// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/mad_packet.hpp"

#include <utility>

namespace weft::fabric
{

MadAddress MadAddress::reversed() const
{
	MadAddress back = *this;
	std::swap(back.slid, back.dlid);
	std::swap(back.src_qp, back.dest_qp);
	if (back.grh)
		std::swap(back.grh->sgid, back.grh->dgid);
	return back;
}

Packet make_mad_packet(const MadAddress &address, const ib::Mad &mad)
{
	packet::Headers headers;
	headers.lrh.set_vl(address.vl);
	headers.lrh.set_sl(address.sl);
	headers.lrh.dlid = address.dlid;
	headers.lrh.slid = address.slid;
	if (address.grh) {
		headers.has_grh = true;
		headers.grh = *address.grh;
	}
	headers.bth.opcode = ib::opcode_ud_send_only;
	headers.bth.pkey = address.pkey;
	headers.bth.set_migrated(true);
	headers.bth.set_dest_qp(address.dest_qp);
	headers.deth.qkey = address.qkey;
	headers.deth.src_qp = address.src_qp;
	auto bytes = std::as_bytes(std::span(&mad, 1));
	/* This cannot fail, because a UD SEND of 256 bytes is always well formed. */
	return std::move(*Packet::make(headers, Payload::copy_of(bytes)));
}

std::optional<AddressedMad> mad_of_packet(const Packet &packet)
{
	if (packet.bth().opcode != ib::opcode_ud_send_only ||
	    packet.bth().dest_qp() > ib::qpn_gsi || packet.payload().size() != ib::mad_bytes)
		return std::nullopt;
	packet::Headers headers = packet.parse();
	AddressedMad result;
	result.address.slid = headers.lrh.slid;
	result.address.dlid = headers.lrh.dlid;
	result.address.sl = headers.lrh.sl();
	result.address.vl = headers.lrh.vl();
	result.address.src_qp = headers.deth.src_qp;
	result.address.dest_qp = headers.bth.dest_qp();
	result.address.qkey = headers.deth.qkey;
	result.address.pkey = headers.bth.pkey;
	if (headers.has_grh)
		result.address.grh = headers.grh;
	packet.payload().copy_to(std::as_writable_bytes(std::span(&result.mad, 1)));
	return result;
}

bool refuse_request(ib::MadHeader &header)
{
	if (!header.is_method(ib::MadMethod::get) && !header.is_method(ib::MadMethod::set))
		return false;
	header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
	header.status = std::uint16_t{ib::mad_status_unsupported_method_attribute};
	return true;
}

} // namespace weft::fabric
