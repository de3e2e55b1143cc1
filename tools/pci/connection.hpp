// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// One client's socket: cuts what comes into messages, sends what they are answered with. Never
// blocks, and works in bounded slices so that the loop's other work gets its turn.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <asio/posix/stream_descriptor.hpp>

#include "pci/message_reader.hpp"

namespace weft
{
class Loop;
}

namespace weft::pci
{

class Connection : public std::enable_shared_from_this<Connection>
{
public:
	struct Callbacks {
		// Answers a message; an empty span is no answer.
		std::function<std::span<const std::byte>(Message &)> message;
		// The connection has closed itself, and why. Called once, as the last thing.
		std::function<void(const std::string &reason)> closed;
	};

	// Loop's thread only, as all else. Held by shared_ptr: what is under way on the loop holds
	// one more.
	Connection(Loop &loop, FileDescriptor socket, const Framing &framing, Callbacks callbacks);

	void start();
	// Closes without a callback.
	void close();
	// Closes, with the callback.
	void drop(const std::string &reason);
	// Whether the other side has hung up, though there may be messages left to read.
	bool hung_up();

private:
	enum class Received { Data, Nothing, End };

	void wait_readable();
	void wait_writable();
	void read_slice();
	bool handle_messages(unsigned &budget);
	Received receive();
	void send(std::span<const std::byte> message);
	void flush();
	// Bytes sent of @message, which may be none; drops the connection on an error.
	std::size_t try_send(std::span<const std::byte> message);

	Loop &loop_;
	asio::posix::stream_descriptor socket_;
	Callbacks callbacks_;
	MessageReader reader_;
	// Replies that the socket did not take, up to a bound. Each is sent by a call of its own: a
	// client may rely on a header arriving whole, as QEMU does.
	const std::size_t most_unsent_;
	std::deque<std::vector<std::byte>> unsent_;
	std::size_t unsent_bytes_ = 0;
	std::size_t first_sent_ = 0; // bytes of unsent_.front() that are gone
};

} // namespace weft::pci
