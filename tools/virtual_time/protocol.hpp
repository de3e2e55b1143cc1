// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Protocol between User-Mode Linux guests (time-travel=ext) and their time server: messages of a
// fixed size in the host's byte order. Each is answered by an acknowledgement with its sequence
// number. linux/um_timetravel.h is the reference.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::virtual_time
{

enum class Operation : std::uint32_t {
	ack = 0,
	start = 1,       // the first, once; its time is the member's number
	request = 2,     // to run at that time; a later one replaces it
	wait = 3,        // for its turn
	get = 4,         // answered by the time
	update = 5,      // it goes by that time now
	run = 6,         // to the member: its turn, and the time
	free_until = 7,  // to the member; not sent here
	time_of_day = 8, // answered by it
};

struct Message {
	Operation operation;
	std::uint32_t sequence;
	std::uint64_t time; // nanoseconds
};
static_assert(sizeof(Message) == 16 && offsetof(Message, time) == 8);

// A request for this or later is for nothing: the kernel has nothing planned.
constexpr std::uint64_t kNever = INT64_MAX;

} // namespace weft::virtual_time
