// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Generates invalid datagrams, from random bytes to packets with a single invalid field. Tests send
 * them to an IPoIB interface, which must continue to work.
 */
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace weft::malicious_guest
{

using Random = std::mt19937_64;

/*
 * One datagram of at most `limit` bytes, of a kind that `random` chooses: noise, nothing at all, an
 * unknown protocol, IPv4, IPv6 or TCP with impossible lengths, ARP and neighbour discovery with
 * hardware addresses of others. `address` is the receiver's own 20-byte hardware address, which
 * some of them claim.
 */
std::vector<std::uint8_t> make_frame(Random &random, std::size_t limit,
				     std::span<const std::uint8_t, 20> address);

} // namespace weft::malicious_guest
