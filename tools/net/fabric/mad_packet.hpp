// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Converts between MADs and the packets that carry them: UD SENDs to QP0 and QP1 (IBA 13.5). */
#pragma once

#include <optional>

#include <ib/mad.hpp>

#include "net/fabric/packet.hpp"

namespace weft::fabric
{

/* Source and destination of a MAD. */
struct MadAddress {
	ib::Lid slid = ib::lid_permissive;
	ib::Lid dlid = ib::lid_permissive;
	std::uint8_t sl = 0;
	std::uint8_t vl = ib::vl_management;
	std::uint32_t src_qp = 0;
	std::uint32_t dest_qp = 0;
	std::uint32_t qkey = 0;
	ib::Pkey pkey = ib::pkey_default_full;
	/* The addresses of the GRH, if there is one. */
	std::optional<ib::Grh> grh;

	/* Returns the address for a response. */
	MadAddress reversed() const;
};

Packet make_mad_packet(const MadAddress &address, const ib::Mad &mad);

struct AddressedMad {
	MadAddress address;
	ib::Mad mad;
};

/*
 * Returns the MAD in a packet, or nothing if the packet is not a UD SEND of 256 bytes to QP0 or
 * QP1.
 */
std::optional<AddressedMad> mad_of_packet(const Packet &packet);

/*
 * Turns a Get or Set of a class that the node does not support into an error response, as Linux
 * does (IBA 13.4.6.1). Returns false if the MAD has no response.
 */
bool refuse_request(ib::MadHeader &header);

} // namespace weft::fabric
