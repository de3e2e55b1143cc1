// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides a vhost-user server with a FakeDevice, and a guest that is connected to the server.
#pragma once

#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/guest_memory.hpp"
#include "bus/pci/testing/fake_device.hpp"
#include "bus/vhost-user/server.hpp"
#include "bus/vhost-user/testing/fake_guest.hpp"

namespace weft::vhost_user
{

using testing::Bytes;
using testing::bytes_of;
using testing::FakeDevice;
using testing::FakeGuest;

class ServerTest : public ::testing::Test
{
protected:
	ServerTest() { connect(); }

	// Connects a new guest, which has not sent a message yet.
	FakeGuest &connect()
	{
		auto [ours, theirs] = FakeGuest::make_sockets();
		server_.serve(std::move(theirs));
		guest_.emplace(loop_, std::move(ours));
		return *guest_;
	}
	FakeGuest &guest() { return *guest_; }

	// Checks that the guest was disconnected, and that the card was plugged in again and works
	// for the next one.
	void expect_lost()
	{
		EXPECT_TRUE(guest().wait_closed());
		EXPECT_FALSE(server_.connected());
		EXPECT_EQ(device_.host().dma().mappings(), 0u);
		connect().greet();
		EXPECT_EQ(guest().read_config<std::uint16_t>(0), device_.description().vendor);
	}

	Loop loop_{"test", Loop::Mode::manual};
	FakeDevice device_;
	Server server_{loop_, device_, "card"};
	std::optional<FakeGuest> guest_;
};

// A ServerTest that starts with a session whose queues work.
class GreetedTest : public ServerTest
{
protected:
	GreetedTest() { guest().greet(); }
};

} // namespace weft::vhost_user
