// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A descriptor that a client passes to be notified of events. The client may do anything with it:
// fill it, never read it, and change its flags (O_NONBLOCK belongs to the open file, which both
// processes share). ring() never waits for the client.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/descriptor_kind.hpp"
#include "base/file_descriptor.hpp"

namespace weft
{

class Notifier
{
public:
	enum class Kind {
		event,   // an eventfd, whose counter is added to
		channel, // the write end of a pipe, or a stream socket, which messages are put into
	};

	// Takes @fd, or gives nothing if it is not of that @kind. Throws std::system_error if the
	// process lacks something that it takes.
	static std::optional<Notifier> take(FileDescriptor fd, Kind kind);

	// Adds one to the event's counter, unless that is full; or puts @message, of PIPE_BUF bytes
	// at most, whole into the channel, unless there is no room.
	void ring(std::span<const std::byte> message = {}) const;

private:
	Notifier(FileDescriptor fd, DescriptorKind kind) : fd_(std::move(fd)), kind_(kind) {}

	FileDescriptor fd_;
	DescriptorKind kind_; // Event, Pipe or Socket
};

// Resets the counter of the eventfd @event without waiting, regardless of its flags. Returns false
// if the counter was 0.
bool take_count(int event);

} // namespace weft
