// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Encoding of timeouts in CM messages: a value t of five bits means 4.096 us * 2^t (IBA 12.6.5).
 */
#pragma once

#include <kern/types.h>

namespace cm
{

/*
 * A peer's values cannot make the CM wait longer than this for one answer, or stay longer in
 * time-wait. The largest encoded value would be 2.4 hours; connections usually use 69 s.
 */
inline constexpr u32 longest_wait_ms = 90'000;

/* Takes numbers with more bits, such as a path's lifetime, as the longest time there is. */
constexpr u64 time_ns(unsigned t)
{
	return u64{4096} << (t < 31 ? t : 31);
}

/* The result is at least 1, and limited as described above. */
constexpr u32 wait_ms(u64 ns)
{
	const u64 ms = (ns + 999'999) / 1'000'000;
	return ms < longest_wait_ms ? static_cast<u32>(ms) : longest_wait_ms;
}

/*
 * Returns the time for which REQ and LAP wait: the round trip and the peer's response time (IBA
 * 12.9.8.2).
 */
constexpr u32 response_ms(u8 packet_lifetime, u8 response_timeout)
{
	return wait_ms(2 * time_ns(packet_lifetime) + time_ns(response_timeout));
}

/*
 * A QP's time-out for a path: there and back, and the delay of the CA's acknowledgement; the
 * nearest power of two above (IBA 12.7.34).
 */
constexpr u8 ack_timeout(u8 ca_ack_delay, u8 packet_lifetime)
{
	const unsigned delay = ca_ack_delay, there_and_back = packet_lifetime + 1u;
	const unsigned most = delay > there_and_back ? delay : there_and_back;
	const unsigned least = delay > there_and_back ? there_and_back : delay;
	const unsigned sum = most + (least + 1 >= most);
	return static_cast<u8>(sum < 31 ? sum : 31);
}

} // namespace cm
