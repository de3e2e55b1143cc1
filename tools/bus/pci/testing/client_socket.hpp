// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides the client's end of a server's socket, for tests. The server is either in the same
// process or in another one. In the same process, server and test share a thread: the server's loop
// runs while the client waits for a reply.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/loop.hpp"

namespace weft::testing
{

using Bytes = std::vector<std::byte>;

void append_raw(Bytes &bytes, const void *data, std::size_t size);

// Appends the bytes of a value. Strings are appended with their terminating zero.
template<typename T>
void append_bytes(Bytes &bytes, const T &value)
{
	if constexpr (std::is_convertible_v<T, std::string>) {
		const std::string text(value);
		append_raw(bytes, text.c_str(), text.size() + 1);
	} else if constexpr (std::is_trivially_copyable_v<T>) {
		append_raw(bytes, &value, sizeof(value));
	} else {
		append_raw(bytes, value.data(), value.size());
	}
}
template<typename... T>
Bytes bytes_of(const T &...values)
{
	Bytes bytes;
	(append_bytes(bytes, values), ...);
	return bytes;
}

class ClientSocket
{
public:
	// The server has closed the connection, as it does with clients that withdraw their shared
	// memory.
	struct HungUp : std::runtime_error {
		using std::runtime_error::runtime_error;
	};

	// @socket is the client's end; @loop is the server's, in manual mode.
	ClientSocket(Loop &loop, FileDescriptor socket) : loop_(&loop), socket_(std::move(socket))
	{
	}
	// For a server in another process, which may take up to @time_limit to answer.
	ClientSocket(FileDescriptor socket, Clock::duration time_limit)
	    : socket_(std::move(socket)), time_limit_(time_limit)
	{
	}

	// Makes a connected pair: the client keeps one end, the server gets the other.
	static std::pair<FileDescriptor, FileDescriptor> make_sockets();

	// Sends bytes unchanged. Descriptors remain open, and must be valid during the call.
	void send_raw(std::span<const std::byte> bytes, const std::vector<int> &fds = {});
	// Fills @data. Throws HungUp, or another std::runtime_error if the data does not arrive in
	// time.
	void receive_raw(std::span<std::byte> data);
	template<typename T>
	T receive_as()
	{
		static_assert(std::is_trivially_copyable_v<T>);
		T value;
		receive_raw(std::as_writable_bytes(std::span(&value, 1)));
		return value;
	}

	// Returns the descriptors that were received since the last call.
	std::vector<FileDescriptor> take_descriptors() { return std::exchange(received_, {}); }

	// Runs the server until it has closed the connection; false if it does not.
	bool wait_closed();
	// Returns true if everything that the server sent has been received.
	bool quiet();
	void close() { socket_.reset(); }
	int fd() const { return socket_.get(); }

private:
	// Lets the server run until @done, which polls the socket for @events.
	bool wait_until(const std::function<bool()> &done, short events);
	bool readable();
	bool closed();

	Loop *const loop_ = nullptr;
	FileDescriptor socket_;
	std::vector<FileDescriptor> received_;
	const Clock::duration time_limit_ = std::chrono::seconds(5);
};

} // namespace weft::testing
