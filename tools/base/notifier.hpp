// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Notifies a client process of events through a file descriptor (an eventfd, a pipe or a socket)
// that the client has passed. ring() never waits for the client, even if the client fills the pipe,
// never reads it, or clears O_NONBLOCK, a flag of the open file, which both processes share.
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
		event, // an eventfd, whose counter ring() increments
		// the write end of a pipe or a stream socket, to which ring() writes messages
		channel,
	};

	// Takes ownership of @fd. Returns nothing if it is not of the kind @kind. Throws
	// std::system_error if the process lacks a resource.
	static std::optional<Notifier> take(FileDescriptor fd, Kind kind);

	// Increments the event's counter unless it is full, or writes @message, of at most PIPE_BUF
	// bytes, to the channel if there is space for the whole message.
	void ring(std::span<const std::byte> message = {}) const;

private:
	Notifier(FileDescriptor fd, DescriptorKind kind) : fd_(std::move(fd)), kind_(kind) {}

	FileDescriptor fd_;
	DescriptorKind kind_; // event, pipe or socket
};

// Resets the counter of the eventfd @event without waiting, regardless of its flags. Returns false
// if the counter was 0.
bool take_count(int event);

} // namespace weft
