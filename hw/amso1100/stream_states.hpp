// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the state table of a QP's stream: the effect of each request of the driver and each event
 * of the card, and the event that the connection manager then receives. The end of a stream is
 * reported once, whichever side has caused it. No event is reported that the connection manager
 * does not expect.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace amso1100
{

enum class Stream : std::uint8_t {
	idle,
	connecting, /* the card was requested to connect */
	accepting,  /* the card was requested to accept */
	established,
	closing, /* an orderly close by the driver or by the card is in progress */
	ended,   /* no events follow; posted requests are flushed */
};
inline constexpr std::size_t stream_count = 6;

enum class StreamEvent : std::uint8_t {
	connect,
	accept,
	made, /* the card has connected or accepted */
	refused,
	close,  /* an orderly close was requested, or the peer has started it */
	closed, /* the card has closed or lost the connection */
	end,    /* an abrupt close was requested */
	reset,
};
inline constexpr std::size_t stream_event_count = 8;

enum class Upcall : std::uint8_t {
	invalid, /* the event is not valid in this state, and has no effect */
	nothing,
	connected,
	refused, /* connecting or accepting has failed */
	accepted,
	closed,
};

struct StreamStep {
	Upcall upcall;
	Stream next;
};

constexpr StreamStep step(Stream state, StreamEvent event)
{
	using enum Stream;
	using E = StreamEvent;
	switch (state) {
	case idle:
		return event == E::connect  ? StreamStep{Upcall::nothing, connecting}
		       : event == E::accept ? StreamStep{Upcall::nothing, accepting}
		       : event == E::end    ? StreamStep{Upcall::nothing, ended}
		       : event == E::reset  ? StreamStep{Upcall::nothing, idle}
					    : StreamStep{Upcall::invalid, idle};
	case connecting:
		return event == E::made      ? StreamStep{Upcall::connected, established}
		       : event == E::refused ? StreamStep{Upcall::refused, idle}
		       : event == E::closed || event == E::end
			       ? StreamStep{Upcall::refused, ended}
			       : StreamStep{Upcall::invalid, connecting};
	case accepting:
		/* accept() itself returns the error to its caller. */
		return event == E::made      ? StreamStep{Upcall::accepted, established}
		       : event == E::refused ? StreamStep{Upcall::nothing, idle}
		       : event == E::closed || event == E::end
			       ? StreamStep{Upcall::nothing, ended}
			       : StreamStep{Upcall::invalid, accepting};
	case established:
		return event == E::close ? StreamStep{Upcall::nothing, closing}
		       : event == E::closed || event == E::end
			       ? StreamStep{Upcall::closed, ended}
			       : StreamStep{Upcall::invalid, established};
	case closing:
		return event == E::close ? StreamStep{Upcall::nothing, closing}
		       : event == E::closed || event == E::end
			       ? StreamStep{Upcall::closed, ended}
			       : StreamStep{Upcall::invalid, closing};
	case ended:
		return event == E::end || event == E::close || event == E::closed
			       ? StreamStep{Upcall::nothing, ended}
		       : event == E::reset ? StreamStep{Upcall::nothing, idle}
					   : StreamStep{Upcall::invalid, ended};
	}
	return {Upcall::invalid, state};
}

} // namespace amso1100
