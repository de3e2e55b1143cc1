/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Counts the packets, bytes and errors of an interface. Each counter has one writer at a time (the
 * NAPI or the transmit lock of its queue) or is updated atomically. Readers take no lock.
 */
#pragma once

#include <kern/types.h>

namespace ipoib
{

struct ReceiveCounters {
	u64 packets, bytes, multicast;
	u64 too_short, too_long, unknown_type, from_self, no_memory, errors;
	/* rearms_missed: arming the CQ found completions that were already waiting (NOTIFY-09) */
	u64 polls, rearms_missed;
	u64 pages_reused, pages_allocated;
	u64 unsummed; /* packets without a checksum, as agreed with the peer */
	/*
	 * packets without a checksum that arrived when no agreement with the sender was in force
	 * any more
	 */
	u64 unsummed_lost;
};

struct TransmitCounters {
	u64 packets, bytes, errors;
	u64 inlined,
		segmented; /* packets copied into the work request; packets cut by the device */
	u64 doorbells, completions;
	u64 queue_stops, rearms_missed;

	TransmitCounters &operator+=(const TransmitCounters &other)
	{
		packets += other.packets;
		bytes += other.bytes;
		errors += other.errors;
		inlined += other.inlined;
		segmented += other.segmented;
		doorbells += other.doorbells;
		completions += other.completions;
		queue_stops += other.queue_stops;
		rearms_missed += other.rearms_missed;
		return *this;
	}
};

/* Increments a counter that has several writers. Context: any. */
inline void count(u64 &counter)
{
	__atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
}

} // namespace ipoib
