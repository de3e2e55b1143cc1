// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Bytes covered by the two CRCs of a packet, IBA 7.8.1 and 7.8.2.
 */
#pragma once

#include <ib/crc.hpp>
#include <ib/packet.hpp>

namespace packet
{

/*
 * The invariant CRC over a packet's headers with the variant fields masked. Continue with the
 * payload and the pad (update()), then take value().
 * @headers: LRH to the last extension header, well formed (as after build() or parse()).
 */
ib::Icrc icrc_over_headers(const std::uint8_t *headers, unsigned size);

/* The ICRC of a packet that lies in one piece; size excludes the ICRC itself. */
std::uint32_t icrc_of(const std::uint8_t *packet, unsigned header_bytes, unsigned size);

/* The VCRC of a packet that lies in one piece; size includes the ICRC. */
std::uint16_t vcrc_of(const std::uint8_t *packet, unsigned size);

} // namespace packet
