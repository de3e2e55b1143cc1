// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a vfio-user client for tests, in place of QEMU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bus/pci/testing/client_socket.hpp"
#include "bus/vfio-user/protocol.hpp"

namespace weft::testing
{

class FakeClient final : public ClientSocket
{
public:
	using Header = vfio_user::Header;
	using Command = vfio_user::Command;

	struct Reply {
		Header header;
		Bytes payload;

		// Returns 0 if the request succeeded, or else the errno value.
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

	using ClientSocket::ClientSocket;

	// Sends a request as one message. The descriptors stay open.
	void send(Command command, const Bytes &payload = {}, const std::vector<int> &fds = {},
		  std::uint32_t flags = 0);
	// Returns the next reply. Throws HungUp, or another std::runtime_error if the reply is
	// malformed or does not arrive in time.
	Reply receive();
	// Sends a request and receives the next reply, which must belong to it.
	Reply call(Command command, const Bytes &payload = {}, const std::vector<int> &fds = {});
	// Sends the first request of every session as QEMU 11.1 does.
	Reply greet();

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
	void must(const Reply &reply, const char *what);

	std::uint16_t next_id_ = 1;
};

} // namespace weft::testing
