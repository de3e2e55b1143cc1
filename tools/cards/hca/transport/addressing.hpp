// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sets the routing headers of outgoing packets: the fields of LRH, GRH and BTH that depend on the
 * address path or address vector.
 */
#pragma once

#include "cards/hca/port.hpp"
#include "cards/hca/queue_pair.hpp"
#include "cards/hca/requests.hpp"
#include "core/wire/headers.hpp"
#include "net/fabric/packet.hpp"

namespace weft::hca::transport
{

/* Sets LRH, GRH and the P_Key for packets of a connected QP. */
void address_connected(const CardPort &port, const AddressPath &path, packet::Headers &headers);

/* Sets them for a datagram with an address vector. @pkey_index is the QP's. */
void address_datagram(const CardPort &port, const Datagram &address, unsigned pkey_index,
		      packet::Headers &headers);

/*
 * Sets the headers for an SMP of QP0 (IBA 13.5.3), which uses VL 15 and no P_Key. A directed route
 * that starts at the card has the permissive LID as source and destination (IBA 14.2.2).
 */
void address_smp(const CardPort &port, const Datagram &address, packet::Headers &headers);

/*
 * Sets the headers of a response to a received datagram, with the addresses reversed and the same
 * P_Key.
 */
void address_reply(const CardPort &port, const fabric::Packet &request, packet::Headers &headers);

} // namespace weft::hca::transport
