// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines a message that an attached program and the server exchange on an opened port: a header
// (UserMad, which corresponds to the kernel's struct ib_user_mad), followed by the MAD or RMPP
// message.
#pragma once

#include <cstddef>
#include <vector>

#include "attach/protocol.hpp"

namespace weft::attach
{

struct Message {
	UserMad header{};
	std::vector<std::byte> bytes;
	// True for the outcome of a send, which counts as pending until the program has received
	// it.
	bool outcome = false;
};

// Sends @message on the socket without waiting. Returns 0 or an errno, which is EAGAIN if there is
// no space.
int send_message(int socket, const UserMad &header, const std::byte *bytes, std::size_t size);

// Receives the next message without waiting. Returns 0 or an errno: EAGAIN if there is none,
// ECONNRESET if the connection was closed, EPROTO if the message is invalid.
int receive_message(int socket, Message &message);

} // namespace weft::attach
