// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Converts the encoded timeouts of CM messages to times and back. A value t of five bits means
 * 4.096 us * 2^t (IBA 12.6.5).
 */
#pragma once

#include <kern/types.h>

namespace cm
{

/*
 * Maximum time that the CM waits for one response, or stays in timewait, regardless of the peer's
 * values. The largest encoded value would be 2.4 hours; connections usually use 69 s.
 */
inline constexpr u32 longest_wait_ms = 90'000;

/* Decodes a time. Values above 31, such as a path's lifetime may have, are limited to 31. */
constexpr u64 time_ns(unsigned t)
{
	return u64{4096} << (t < 31 ? t : 31);
}

/* Converts to milliseconds; the result is between 1 and longest_wait_ms. */
constexpr u32 wait_ms(u64 ns)
{
	const u64 ms = (ns + 999'999) / 1'000'000;
	return ms < longest_wait_ms ? static_cast<u32>(ms) : longest_wait_ms;
}

/*
 * Returns the time that a REQ or LAP waits for a response: twice the packet lifetime, and the
 * peer's response time (IBA 12.9.8.2).
 */
constexpr u32 response_ms(u8 packet_lifetime, u8 response_timeout)
{
	return wait_ms(2 * time_ns(packet_lifetime) + time_ns(response_timeout));
}

/*
 * Returns the encoded ACK timeout of a path: twice the packet lifetime plus the CA's ACK delay,
 * rounded up to a power of two (IBA 12.7.34).
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
