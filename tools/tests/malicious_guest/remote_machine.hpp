// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A guest without an operating system, whose only device is a card of weftd. It connects to the
// card as QEMU does.
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
	// For an answer of the daemon's, on a host that has much else to do.
	static constexpr std::chrono::seconds kPatience{60};

	// Connects to the card at @socket, and lends it @memory_size bytes from address 0. Throws
	// FakeClient::HungUp, as all methods, once the daemon has ended the connection, and another
	// exception for whatever else goes wrong.
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

// A connection to the Unix socket at @path.
FileDescriptor connect_to(const std::filesystem::path &path);

} // namespace weft::malicious_guest
