// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The one table of a QP's stream: what each request of ours and each word of the card leads to, and
 * what the connection manager is told then. It is told of an end once, whoever brought it about,
 * and of nothing that it was not promised.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace ammasso
{

enum class Stream : std::uint8_t {
	idle,
	connecting, /* the card was asked to connect */
	accepting,  /* or to accept */
	established,
	closing, /* the card was asked to close in order, or does so by itself */
	ended,   /* nothing comes any more; what is posted is flushed */
};
inline constexpr std::size_t stream_count = 6;

enum class StreamEvent : std::uint8_t {
	connect,
	accept,
	made, /* connected, or accepted */
	refused,
	close,  /* asked for, or begun by the peer */
	closed, /* the card has closed, or lost it */
	end,    /* asked for: at once */
	reset,
};
inline constexpr std::size_t stream_event_count = 8;

enum class Tell : std::uint8_t {
	invalid, /* the event has no place here, and changes nothing */
	nothing,
	connected,
	refused, /* what was to be connected is not */
	accepted,
	closed,
};

struct StreamStep {
	Tell tell;
	Stream next;
};

constexpr StreamStep step(Stream state, StreamEvent event)
{
	using enum Stream;
	using E = StreamEvent;
	switch (state) {
	case idle:
		return event == E::connect  ? StreamStep{Tell::nothing, connecting}
		       : event == E::accept ? StreamStep{Tell::nothing, accepting}
		       : event == E::end    ? StreamStep{Tell::nothing, ended}
		       : event == E::reset  ? StreamStep{Tell::nothing, idle}
					    : StreamStep{Tell::invalid, idle};
	case connecting:
		return event == E::made      ? StreamStep{Tell::connected, established}
		       : event == E::refused ? StreamStep{Tell::refused, idle}
		       : event == E::closed || event == E::end
			       ? StreamStep{Tell::refused, ended}
			       : StreamStep{Tell::invalid, connecting};
	case accepting:
		/* Whoever asked to accept learns it by that call's error. */
		return event == E::made      ? StreamStep{Tell::accepted, established}
		       : event == E::refused ? StreamStep{Tell::nothing, idle}
		       : event == E::closed || event == E::end
			       ? StreamStep{Tell::nothing, ended}
			       : StreamStep{Tell::invalid, accepting};
	case established:
		return event == E::close ? StreamStep{Tell::nothing, closing}
		       : event == E::closed || event == E::end
			       ? StreamStep{Tell::closed, ended}
			       : StreamStep{Tell::invalid, established};
	case closing:
		return event == E::close                       ? StreamStep{Tell::nothing, closing}
		       : event == E::closed || event == E::end ? StreamStep{Tell::closed, ended}
							       : StreamStep{Tell::invalid, closing};
	case ended:
		return event == E::end || event == E::close || event == E::closed
			       ? StreamStep{Tell::nothing, ended}
		       : event == E::reset ? StreamStep{Tell::nothing, idle}
					   : StreamStep{Tell::invalid, ended};
	}
	return {Tell::invalid, state};
}

} // namespace ammasso
