// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a vhost-user front end for tests. Like User-Mode Linux, it uses the PCI function of the
// server. It can also misbehave as a malicious process would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory_mapping.hpp"
#include "bus/pci/testing/client_socket.hpp"
#include "bus/vhost-user/protocol.hpp"

namespace weft::testing
{

class FakeGuest final : public ClientSocket
{
public:
	// The guest's memory and its contents. The client's virtual addresses differ from the
	// guest's physical ones.
	static constexpr std::uint64_t kMemory = 0x100000;
	static constexpr std::uint64_t kMemorySize = 256 << 10;
	static constexpr std::uint64_t kClientOffset = 0x7000'0000'0000;
	static constexpr std::uint32_t kEntries = 16;
	static constexpr std::uint64_t kBuffers = kMemory + 0x10000;

	// A queue from the driver's point of view.
	struct Queue {
		std::uint64_t descriptors;
		std::uint64_t available;
		std::uint64_t used;
		std::uint16_t seen = 0; // the index of the used ring that was processed
	};

	FakeGuest(Loop &loop, FileDescriptor socket);

	// Sends a request. ask() and call() return its answer: the requested number, or an error
	// (0: none).
	void send(vhost_user::Request request, const Bytes &payload = {},
		  const std::vector<int> &fds = {},
		  std::uint32_t flags = vhost_user::kFlagNeedReply);
	std::uint64_t call(vhost_user::Request request, const Bytes &payload = {},
			   const std::vector<int> &fds = {});
	template<typename T>
	std::uint64_t call_with(vhost_user::Request request, const T &payload)
	{
		return call(request, bytes_of(payload));
	}
	// Set the session up until the queues work, in one step or in parts. No step may be
	// refused.
	void greet();
	void agree();
	std::uint64_t share_memory();
	std::uint64_t set_channel();
	std::uint64_t place(std::uint32_t queue);
	std::uint64_t enable(std::uint32_t queue, bool on = true);
	std::uint64_t kick(std::uint32_t queue);

	// Returns guest memory. Throws std::out_of_range for other addresses.
	std::span<std::byte> memory(std::uint64_t address, std::size_t size);
	template<typename T>
	T &object(std::uint64_t address)
	{
		return *reinterpret_cast<T *>(memory(address, sizeof(T)).data());
	}
	int memory_fd() const { return file_.get(); }

	Queue &queue(std::uint32_t number) { return queues_[number]; }
	void set_descriptor(std::uint32_t queue, std::uint16_t number,
			    const vhost_user::Descriptor &descriptor);
	// Makes the chain that begins at @head available, without a kick.
	void make_available(std::uint32_t queue, std::uint16_t head);
	// Returns the next used element that was not yet taken, if any.
	std::optional<vhost_user::UsedElement> take_used(std::uint32_t queue);
	// Returns the queues whose call descriptors were signalled since the last call.
	std::vector<std::uint32_t> take_calls();

	// Executes a command as UML does: its header and data in one buffer, and an answer of @room
	// bytes in another. Returns the answer.
	Bytes execute(vhost_user::Operation operation, std::uint8_t bar, std::uint64_t address,
		      std::uint32_t size, const Bytes &data, std::uint32_t room);
	template<typename T>
	T read(std::uint8_t bar, std::uint64_t address)
	{
		return value<T>(execute(vhost_user::Operation::memory_read, bar, address, sizeof(T),
					{}, sizeof(T)));
	}
	template<typename T>
	T read_config(std::uint64_t address)
	{
		return value<T>(execute(vhost_user::Operation::config_read, 0, address, sizeof(T),
					{}, sizeof(T)));
	}
	template<typename T>
	void write(std::uint8_t bar, std::uint64_t address, T data)
	{
		execute(vhost_user::Operation::memory_write, bar, address, sizeof(T),
			bytes_of(data), 0);
	}
	template<typename T>
	void write_config(std::uint64_t address, T data)
	{
		execute(vhost_user::Operation::config_write, 0, address, sizeof(T), bytes_of(data),
			0);
	}
	// The offset of a capability, found as a driver finds it; 0 if there is none.
	std::uint8_t find_capability(std::uint8_t id);

	// Posts a buffer of @size bytes to the message queue.
	void give_buffer(std::uint32_t size = sizeof(vhost_user::Command) + 4);
	// Address and data of a message.
	struct Msi {
		std::uint64_t address;
		std::uint32_t data;
		bool operator==(const Msi &) const = default;
	};
	std::optional<Msi> take_message();

private:
	template<typename T>
	static T value(const Bytes &bytes)
	{
		if (bytes.size() != sizeof(T))
			throw std::runtime_error("an answer of the wrong size");
		T result;
		std::memcpy(&result, bytes.data(), sizeof(T));
		return result;
	}

	FileDescriptor file_;
	std::shared_ptr<const MemoryMapping> memory_;
	FileDescriptor calls_; // read end of the queues' calls
	std::vector<Queue> queues_;
	std::uint16_t next_buffer_ = 0;
};

} // namespace weft::testing
