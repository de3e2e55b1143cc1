// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A machine with nothing in it but a card of weftd's, reached as QEMU reaches it.
#pragma once

#include <filesystem>
#include <memory>

#include "base/file_descriptor.hpp"
#include "base/guest_memory.hpp"
#include "base/loop.hpp"
#include "vfio-user/testing/fake_client.hpp"
#include "vfio-user/testing/machine.hpp"

namespace weft::stranger
{

class RemoteMachine final : public testing::Machine
{
public:
	// Connects to the card at @socket, and lends it @memory_size bytes from address 0. Throws std::runtime_error or
	// std::system_error, as do all methods once the card has hung up.
	RemoteMachine(const std::filesystem::path &socket, std::uint64_t memory_size);
	~RemoteMachine() override;

	void read_register(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void write_register(unsigned bar, std::uint64_t offset, std::span<const std::byte> data) override;
	std::span<std::byte> memory(std::uint64_t address, std::size_t size) override;

	testing::FakeClient &client() { return *client_; }
	int memory_fd() const { return memory_fd_.get(); }
	std::uint64_t memory_size() const { return memory_size_; }

private:
	// The client's side needs no loop of its own; this one has nothing to run.
	Loop loop_{"stranger", Loop::Mode::Manual};
	std::uint64_t memory_size_;
	FileDescriptor memory_fd_;
	std::byte *memory_;
	std::unique_ptr<testing::FakeClient> client_;
};

// A connection to the Unix socket at @path.
FileDescriptor connect_to(const std::filesystem::path &path);

} // namespace weft::stranger
