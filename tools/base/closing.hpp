// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Closes descriptors that other processes have sent. close() may block until the server of a file
// system replies, or until the peer of a socket reads the remaining data. The thread of a card must
// not wait for that, so separate threads close such descriptors.
#pragma once

#include <cstddef>

namespace weft
{

// While this number of descriptors is being closed, no others are accepted: they are not received,
// and the kernel drops them without waiting.
constexpr std::size_t kMostClosing = 64;

// Records that a client has sent @fd. If closing it may block, its FileDescriptor passes it to a
// thread. This function itself only queries the kernel. Throws std::bad_alloc.
void note_sent(int fd);

// Closes @fd. For FileDescriptor.
void close_descriptor(int fd) noexcept;

// Returns the number of descriptors that threads are closing.
std::size_t closing();

} // namespace weft
