// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads the addresses and sizes of the RNIC's three fixed queues from the register page, and
// validates them.
#pragma once
#include <hw/amso1100/registers.hpp>
#include <kern/mmio.hpp>
#include <kern/result.hpp>
#include "message.hpp"

namespace amso1100
{

struct FixedQueue {
	u32 entries;
	u32 slot_bytes;
	u32 pool;   /* for requests: offset of the slots from the register page */
	u32 shared; /* for requests: offset of the shared fields from the register page */
};

struct QueueLayout {
	FixedQueue requests, replies, events;
};

/*
 * Reads and validates the layout. Errors: EPROTO if a queue is outside the window, or its slots are
 * too small for a message. Context: any.
 */
kern::Result<QueueLayout> read_queue_layout(const kern::Mmio &page, u64 window_bytes);

/* Returns true if the range is inside the window and starts at a multiple of eight. */
constexpr bool fits(u64 window_bytes, u64 offset, u64 bytes)
{
	return offset % 8 == 0 && offset <= window_bytes && bytes <= window_bytes - offset;
}

} // namespace amso1100
