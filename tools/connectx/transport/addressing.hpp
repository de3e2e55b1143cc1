// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The route headers of outgoing packets: what of LRH, GRH and BTH follows from an address.
 */
#pragma once

#include "connectx/port.hpp"
#include "connectx/queue_pair.hpp"
#include "core/wire/headers.hpp"
#include "fabric/packet.hpp"
#include <hw/connectx/wqe.hpp>

namespace weft::connectx::transport
{

/* Fill in LRH, GRH and the P_Key for packets of a connected QP. */
void address_connected(const CardPort &port, const AddressPath &path, packet::Headers &headers);

/* The same for a datagram with an address vector. @pkey_index: the QP's. */
void address_datagram(const CardPort &port, const hw::connectx::AddressVector &address,
		      unsigned pkey_index, packet::Headers &headers);

/* Turn the addresses of a received datagram round, for an answer with the same P_Key. */
void address_reply(const CardPort &port, const fabric::Packet &request, packet::Headers &headers);

} // namespace weft::connectx::transport
