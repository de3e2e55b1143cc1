// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Operates one client's socket: splits the received bytes into messages, and sends the replies.
// Never blocks, and works in bounded slices so that other tasks of the loop can run.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/loop.hpp"
#include "bus/pci/message_reader.hpp"

namespace weft::pci
{

class Connection : public std::enable_shared_from_this<Connection>
{
public:
	struct Reply {
		std::span<const std::byte> bytes; // empty: there is no reply
		int fd = -1; // a descriptor that the reply carries, which stays the handler's
	};
	struct Callbacks {
		// Handles a message and returns the reply, which is valid until the next call.
		std::function<Reply(Message &)> message;
		// Called once, as the last callback, when the connection has closed itself for this
		// reason.
		std::function<void(const std::string &reason)> closed;
	};

	// Only the loop's thread may use it. It is held by shared_ptr; operations in progress on
	// the loop hold another reference.
	Connection(Loop &loop, FileDescriptor socket, const Framing &framing, Callbacks callbacks);

	void start();
	// Closes without a callback.
	void close();
	// Closes the connection and then calls the callback. In virtual time, this waits until the
	// client's time slice has ended.
	void drop(const std::string &reason);
	// Returns true if the peer has hung up, though there may be messages left to read.
	bool hung_up();

private:
	// Result of a read: more data may follow, all was read, or the connection was closed.
	enum class Received { more, all, end };

	void hang_up();
	// Waits until there is data to read, if @reading, and until there is space if replies are
	// queued.
	void want(Watch::Ready reading);
	void read_slice();
	bool handle_messages(unsigned &budget);
	bool may_be_kept(const std::vector<FileDescriptor> &fds);
	Received receive();
	void send(const Reply &reply);
	void flush();
	// Sends @message, with the descriptor @fd if it is not negative. Returns the number of
	// bytes that were sent, which may be 0; drops the connection on an error.
	std::size_t try_send(std::span<const std::byte> message, int fd);

	Loop &loop_;
	FileDescriptor socket_;
	std::optional<Watch> watch_; // exists from start() until the connection ends
	Watch::Ready reading_ = Watch::kReadable;
	Callbacks callbacks_;
	MessageReader reader_;
	// Replies that the socket has not accepted, up to a limit. Each is sent by a separate call,
	// because a client may expect that a header arrives at once, as QEMU does.
	const std::size_t most_unsent_;
	struct Unsent {
		std::vector<std::byte> bytes;
		FileDescriptor fd; // is sent with the first byte
	};
	std::deque<Unsent> unsent_;
	std::size_t unsent_bytes_ = 0;
	std::size_t first_sent_ = 0; // number of bytes of unsent_.front() that were sent
};

} // namespace weft::pci
