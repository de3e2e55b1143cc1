// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses the headers of a datagram of IP over InfiniBand, by which the card chooses its receive
// queue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <hw/mlx5/queues.hpp>
#include <hw/mlx5/raw_queues.hpp>
#include <hw/mlx5/steering.hpp>

namespace weft::mlx5
{

// Extracts the headers of @payload, which begins with the four bytes of encapsulation (RFC 4391),
// in the layout of masks and values of flow tables. Headers that are missing or truncated are zero,
// and so are the ports of a fragment.
hw::mlx5::FlowHeaders read_headers(std::span<const std::byte> payload);

// HashRule - the hash of a transport interface.
struct HashRule {
	hw::mlx5::HashFunction function = hw::mlx5::HashFunction::none;
	bool symmetric = false; // both directions of a connection have the same hash
	bool ipv6 = false;
	bool udp = false;
	std::uint32_t selected = 0;
	std::array<std::uint8_t, hw::mlx5::TirContext::key_size> key{};
};

struct Hash {
	std::uint32_t value = 0;
	std::uint8_t kind = 0; // Cqe::hash_kind
};

// Hashes the fields that @rule selects. The hash of a packet with another IP version is zero.
Hash hash(const HashRule &rule, const hw::mlx5::FlowHeaders &headers);

// The one's complement sum of all bytes after the encapsulation header.
std::uint16_t sum_of(std::span<const std::byte> payload);

} // namespace weft::mlx5
