// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Computes the two CRCs of a packet (IBA 7.8.1 and 7.8.2). */
#pragma once

#include <ib/crc.hpp>
#include <ib/packet.hpp>

namespace packet
{

/*
 * Computes the invariant CRC of a packet's headers, with the variant fields masked. The caller
 * continues with the payload and the pad (update()), and then calls value(). @headers: the headers
 * from the LRH to the last extension header, which must be well formed, as after build() or
 * parse().
 */
ib::Icrc icrc_over_headers(const std::uint8_t *headers, unsigned size);

/* Computes the ICRC of a packet in contiguous memory. @size does not include the ICRC itself. */
std::uint32_t icrc_of(const std::uint8_t *packet, unsigned header_bytes, unsigned size);

/* Computes the VCRC of a packet in contiguous memory. @size includes the ICRC. */
std::uint16_t vcrc_of(const std::uint8_t *packet, unsigned size);

} // namespace packet
