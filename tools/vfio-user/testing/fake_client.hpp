// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A vfio-user client for tests: what QEMU is to the server, on the test's own thread. The server is in
// the same thread, over a socket pair, its loop in manual mode and run whenever the client waits for a
// reply; or it is another process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/loop.hpp"
#include "vfio-user/protocol.hpp"

namespace weft::testing
{

using Bytes = std::vector<std::byte>;

void append_raw(Bytes &bytes, const void *data, std::size_t size);

// The bytes of values of fixed layout, one after the other; text goes with its terminating zero.
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

class FakeClient
{
public:
	using Header = vfio_user::Header;
	using Command = vfio_user::Command;

	struct Reply {
		Header header;
		Bytes payload;

		// 0 if the request was met, else the errno value.
		std::uint32_t error() const { return header.error; }
		template<typename T>
		T as(std::size_t offset = 0) const
		{
			if (offset + sizeof(T) > payload.size())
				throw std::out_of_range("reply is too short");
			T value;
			std::memcpy(&value, payload.data() + offset, sizeof(T));
			return value;
		}
	};

	// The server has ended the connection: what becomes of who shares memory and takes it back.
	struct HungUp : std::runtime_error {
		using std::runtime_error::runtime_error;
	};

	// @socket is the client's end; @loop is the server's, in manual mode.
	FakeClient(Loop &loop, FileDescriptor socket) : loop_(&loop), socket_(std::move(socket)) {}
	// The server is another process, which may take as long as @patience for an answer.
	FakeClient(FileDescriptor socket, Clock::duration patience)
	    : socket_(std::move(socket)), patience_(patience)
	{
	}

	// Makes a connected pair: the client keeps one end, the server gets the other.
	static std::pair<FileDescriptor, FileDescriptor> make_sockets();

	// Sends a request as one message. Descriptors are lent for the call.
	void send(Command command, const Bytes &payload = {}, const std::vector<int> &fds = {},
		  std::uint32_t flags = 0);
	// Sends bytes as they are.
	void send_raw(std::span<const std::byte> bytes, const std::vector<int> &fds = {});
	// The next reply. Throws HungUp, or another std::runtime_error if there is none in time or it is
	// malformed.
	Reply receive();
	// Sends a request and takes its reply, which must belong to it.
	Reply call(Command command, const Bytes &payload = {}, const std::vector<int> &fds = {});
	// The first request of every session, as QEMU 11.1 makes it.
	Reply greet();

	// Runs the server until it has closed the connection; false if it does not.
	bool wait_closed();
	// Whether the server has sent nothing that was not received.
	bool quiet();
	void close() { socket_.reset(); }
	int fd() const { return socket_.get(); }

	// Common requests.
	void map(std::uint64_t address, std::uint64_t size, int fd, std::uint64_t offset = 0,
		 std::uint32_t flags = vfio_user::kDmaReadable | vfio_user::kDmaWritable);
	Bytes read(std::uint32_t region, std::uint64_t offset, std::uint32_t count);
	void write(std::uint32_t region, std::uint64_t offset, const Bytes &data);
	template<typename T>
	T read_as(std::uint32_t region, std::uint64_t offset)
	{
		const auto bytes = read(region, offset, sizeof(T));
		T value;
		std::memcpy(&value, bytes.data(), sizeof(value));
		return value;
	}
	template<typename T>
	void write_as(std::uint32_t region, std::uint64_t offset, T value)
	{
		write(region, offset, bytes_of(value));
	}

private:
	// Lets the server work until @done, which looks at the socket for @events.
	bool wait_until(const std::function<bool()> &done, short events);
	bool readable();
	bool closed();
	void must(const Reply &reply, const char *what);

	Loop *const loop_ = nullptr;
	FileDescriptor socket_;
	const Clock::duration patience_ = std::chrono::seconds(5);
	std::uint16_t next_id_ = 1;
};

} // namespace weft::testing
