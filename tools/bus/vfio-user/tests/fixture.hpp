// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a vfio-user server with a FakeDevice, and a client that is connected to the server.
#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/guest_memory.hpp"
#include "bus/vfio-user/server.hpp"
#include "bus/vfio-user/testing/fake_client.hpp"
#include "bus/pci/testing/fake_device.hpp"

namespace weft::vfio_user
{

using testing::Bytes;
using testing::bytes_of;
using testing::FakeClient;
using testing::FakeDevice;

// Config space offsets by the PCI specification, not by the server's own constants.
constexpr std::uint64_t kPciCommand = 0x04;
constexpr std::uint16_t kPciCommandMaster = 1 << 2;
constexpr std::uint16_t kPciCommandIntxDisable = 1 << 10;

class ServerTest : public ::testing::Test
{
protected:
	ServerTest() { connect(); }

	// Connects a new client, which has not sent a message yet.
	FakeClient &connect()
	{
		auto [ours, theirs] = FakeClient::make_sockets();
		server_.serve(std::move(theirs));
		client_.emplace(loop_, std::move(ours));
		return *client_;
	}
	FakeClient &client() { return *client_; }

	// The offset of a capability, found as a driver finds it; 0 if there is none.
	std::uint8_t find_capability(std::uint8_t id)
	{
		auto at = client().read_as<std::uint8_t>(kRegionConfig, 0x34);
		for (int hops = 0; at && hops < 48; ++hops) {
			if (client().read_as<std::uint8_t>(kRegionConfig, at) == id)
				return at;
			at = client().read_as<std::uint8_t>(kRegionConfig, at + 1u);
		}
		return 0;
	}
	void enable_msix()
	{
		client().write_as<std::uint16_t>(kRegionConfig, kPciCommand, kPciCommandMaster);
		client().write_as<std::uint16_t>(kRegionConfig, find_capability(0x11) + 2u, 0x8000);
	}

	static FileDescriptor make_event()
	{
		return FileDescriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	}
	// Returns how often @event was signalled since the last call.
	static std::uint64_t take(const FileDescriptor &event)
	{
		std::uint64_t count = 0;
		return ::read(event.get(), &count, sizeof(count)) == sizeof(count) ? count : 0;
	}
	static FileDescriptor make_memory(std::uint64_t size)
	{
		FileDescriptor fd(::memfd_create("guest", MFD_CLOEXEC));
		if (::ftruncate(fd.get(), static_cast<off_t>(size)))
			throw std::system_error(errno, std::generic_category(), "ftruncate");
		return fd;
	}

	Loop loop_{"test", Loop::Mode::manual};
	FakeDevice device_;
	Server server_{loop_, device_, "card"};
	std::optional<FakeClient> client_;
};

// A ServerTest that starts after the first message of every session.
class GreetedTest : public ServerTest
{
protected:
	GreetedTest() { client().greet(); }
};

} // namespace weft::vfio_user
