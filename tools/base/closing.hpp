// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Closes descriptors that other processes have sent. close() may block: on the server of a file
// system, or on the reader of data that a socket still has to send. The thread of a card must not
// wait for that, so separate threads close such descriptors.
#pragma once

#include <cstddef>

namespace weft
{

// With this many descriptors being closed, no further ones are accepted: the kernel drops
// descriptors that are not received, without waiting.
constexpr std::size_t kMostClosing = 64;

// A client has sent @fd. If closing it may take time, the FileDescriptor leaves that to a thread.
// It only queries the kernel. Throws std::bad_alloc.
void note_sent(int fd);

// Ends @fd. For FileDescriptor.
void close_descriptor(int fd) noexcept;

// Descriptors whose end is being waited for.
std::size_t closing();

} // namespace weft
