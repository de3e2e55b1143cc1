// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Decodes the times of the transport: the local ACK timeout and the RNR NAK timer. */
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "base/environment.hpp"

namespace weft::hca::transport
{

using Duration = Clock::duration;
using TimePoint = Clock::time_point;

/**
 * ack_timeout() - time after which unacknowledged packets are retransmitted (IBA 9.7.6.1.3)
 * @code: the QP's five-bit local ACK timeout
 *
 * Returns 4.096 us times 2^code, or nothing for code 0, which means never.
 */
constexpr std::optional<Duration> ack_timeout(unsigned code)
{
	code &= 0x1f;
	if (code == 0)
		return std::nullopt;
	return std::chrono::nanoseconds(std::int64_t{4096} << code);
}

/**
 * rnr_delay() - time that a receiver without a WQE requests the sender to wait (IBA table 45)
 * @code: the five-bit timer of an RNR NAK
 */
constexpr Duration rnr_delay(unsigned code)
{
	/* In units of ten microseconds. */
	constexpr std::array<std::uint32_t, 32> table = {
		65536, 1,    2,    3,    4,    6,     8,     12,    16,    24,   32,
		48,    64,   96,   128,  192,  256,   384,   512,   768,   1024, 1536,
		2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152};
	return std::chrono::microseconds(std::int64_t{10} * table[code & 0x1f]);
}

static_assert(ack_timeout(1) == std::chrono::nanoseconds(8192));
static_assert(rnr_delay(0) == std::chrono::microseconds(655360));
static_assert(rnr_delay(31) == std::chrono::microseconds(491520));

} // namespace weft::hca::transport
