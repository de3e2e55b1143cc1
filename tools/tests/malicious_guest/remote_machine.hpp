// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Represents a guest without an operating system, whose only device is a card of weftd. It connects
// to the card by vfio-user, as QEMU does.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "base/file_descriptor.hpp"
#include "base/guest_memory.hpp"
#include "bus/vfio-user/testing/fake_client.hpp"
#include "bus/pci/testing/machine.hpp"

namespace weft::malicious_guest
{

class RemoteMachine final : public testing::Machine
{
public:
	// Time limit for an answer of the daemon on a busy host.
	static constexpr std::chrono::seconds kTimeLimit{60};

	// Connects to the card at @socket, and shares @memory_size bytes from address 0. All
	// methods throw FakeClient::HungUp once the daemon has closed the connection, and other
	// exceptions for other errors.
	RemoteMachine(const std::filesystem::path &socket, std::uint64_t memory_size);
	~RemoteMachine() override;

	void read_register(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void write_register(unsigned bar, std::uint64_t offset,
			    std::span<const std::byte> data) override;
	std::span<std::byte> memory(std::uint64_t address, std::size_t size) override;

	testing::FakeClient &client() { return *client_; }
	int memory_fd() const { return memory_fd_.get(); }
	std::uint64_t memory_size() const { return memory_size_; }

private:
	std::uint64_t memory_size_;
	FileDescriptor memory_fd_;
	std::byte *memory_;
	std::unique_ptr<testing::FakeClient> client_;
};

// Returns a connection to the Unix socket at @path.
FileDescriptor connect_to(const std::filesystem::path &path);

} // namespace weft::malicious_guest
