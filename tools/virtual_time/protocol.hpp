// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the protocol between User-Mode Linux guests (time-travel=ext) and their time server.
// Messages have a fixed size and are in the host's byte order. Each message is answered by an
// acknowledgement with its sequence number. Linux's linux/um_timetravel.h specifies the protocol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::virtual_time
{

enum class Operation : std::uint32_t {
	ack = 0,
	start = 1,       // the first message, whose time is the member's number
	request = 2,     // request to run at that time; a later request replaces it
	wait = 3,        // waits for its time slice
	get = 4,         // requests the time, which is in the acknowledgement
	update = 5,      // the member has advanced to that time
	run = 6,         // to the member: its time slice begins, with the time
	free_until = 7,  // to the member; not used by this server
	time_of_day = 8, // requests the time of day, which is in the acknowledgement
};

struct Message {
	Operation operation;
	std::uint32_t sequence;
	std::uint64_t time; // nanoseconds
};
static_assert(sizeof(Message) == 16 && offsetof(Message, time) == 8);

// A request for this time or later means that the kernel has no planned events.
constexpr std::uint64_t kNever = INT64_MAX;

} // namespace weft::virtual_time
