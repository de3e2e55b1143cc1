// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the sockets of well-behaved and malicious guests on an Ethernet with three attachments.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unix_listener.hpp"
#include "net/ethernet/frame_reader.hpp"
#include "net/ethernet/network.hpp"
#include "nodes.hpp"

namespace weft::ethernet
{
namespace
{

using namespace std::chrono_literals;

using Bytes = std::vector<std::uint8_t>;

Bytes wire(const Frame &frame)
{
	const auto prefix = length_prefix(frame.size());
	Bytes bytes(prefix.size() + frame.size());
	std::ranges::copy(frame, std::ranges::copy(prefix, bytes.begin()).out);
	return bytes;
}

// The guest's end of the connection, as QEMU implements it.
class Client
{
public:
	explicit Client(const std::filesystem::path &socket) : socket_(connect_unix(socket)) {}

	void send(const Bytes &bytes)
	{
		std::size_t sent = 0;
		while (sent < bytes.size()) {
			const auto size = ::send(socket_.get(), bytes.data() + sent,
						 bytes.size() - sent, MSG_NOSIGNAL);
			ASSERT_GT(size, 0);
			sent += static_cast<std::size_t>(size);
		}
	}
	void send(const FramePtr &frame) { send(wire(*frame)); }
	// Returns true if the other end has closed.
	bool closed()
	{
		std::uint8_t byte;
		return ::recv(socket_.get(), &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
	}
	// Returns the last bytes of all frames that have arrived.
	std::string take()
	{
		std::array<std::uint8_t, 65536> part;
		for (ssize_t size;
		     (size = ::recv(socket_.get(), part.data(), part.size(), MSG_DONTWAIT)) > 0;)
			reader_.feed(std::span(part).first(static_cast<std::size_t>(size)),
				     [&](const Frame &frame) {
					     fillers_ += static_cast<char>(frame.back());
				     });
		return fillers_;
	}

private:
	FileDescriptor socket_;
	FrameReader reader_;
	std::string fillers_;
};

class EthernetGuestAttachment : public ::testing::Test
{
public:
	EthernetGuestAttachment()
	{
		spdlog::set_level(spdlog::level::off);
		std::filesystem::create_directory(directory);
		network = std::make_unique<Network>(1, &loop.reactor());
		network->add_switch("lan");
		for (const char *name : {"a", "b", "c"})
			network->add_guest(name, "lan", directory / name, {});
	}
	~EthernetGuestAttachment() override
	{
		network.reset();
		std::filesystem::remove_all(directory);
		spdlog::set_level(spdlog::level::info);
	}
	Client connect(const std::string &name)
	{
		Client client(directory / name);
		EXPECT_TRUE(until([&] { return attachment(name).connected; }));
		return client;
	}
	AttachmentState attachment(const std::string &name)
	{
		for (AttachmentState &each : network->state().attachments)
			if (each.name == name)
				return each;
		throw std::logic_error("no attachment " + name);
	}
	Counters counters(const std::string &name)
	{
		return attachment(name).link.ends[0].counters;
	}
	bool until(const std::function<bool()> &done) { return loop.run_until(done, 5s); }

	const std::filesystem::path directory = std::filesystem::temp_directory_path() /
						("weft-attachment-" + std::to_string(::getpid()));
	Loop loop{"test", Loop::Mode::manual};
	std::unique_ptr<Network> network;
};

constexpr Address kA = 0x02000000000a, kB = 0x02000000000b;

TEST_F(EthernetGuestAttachment, AcceptsFramesWhoseBytesArriveInTwoParts)
{
	Client a = connect("a"), b = connect("b");
	const Bytes bytes = wire(*frame_to(kBroadcast, kA, 'x'));
	for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
		a.send(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut)));
		loop.poll();
		a.send(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(cut), bytes.end()));
		loop.poll();
	}
	EXPECT_TRUE(until([&] { return b.take().size() == bytes.size() + 1; })) << b.take().size();
	EXPECT_EQ(counters("a").xmit_frames, bytes.size() + 1);
	EXPECT_EQ(counters("b").rcv_frames, bytes.size() + 1);
	// c has no guest: frames for it were dropped and counted.
	EXPECT_EQ(counters("c").rcv_discards, bytes.size() + 1);
}

TEST_F(EthernetGuestAttachment, FramesOfInvalidLengthAreDropped)
{
	Client a = connect("a"), b = connect("b");
	for (const std::size_t length :
	     {std::size_t{0}, std::size_t{13}, kMostFrame + 1, FrameReader::kMostLength}) {
		const auto prefix = length_prefix(length);
		a.send(Bytes(prefix.begin(), prefix.end()));
		a.send(Bytes(length, 0xff));
		ASSERT_TRUE(until([&] {
			return counters("a").xmit_undersize + counters("a").xmit_oversize != 0;
		}));
	}
	a.send(frame_to(kBroadcast, kA, 0, 0));
	a.send(frame_to(kBroadcast, kA, 'y', kMostFrame - kLeastFrame));
	EXPECT_TRUE(until([&] { return b.take() == "\xb5y"; })) << b.take();
	EXPECT_EQ(counters("a").xmit_undersize, 2u);
	EXPECT_EQ(counters("a").xmit_oversize, 2u);
	EXPECT_FALSE(a.closed());
}

TEST_F(EthernetGuestAttachment, ProtocolErrorOfAGuestClosesOnlyItsConnection)
{
	Client a = connect("a"), b = connect("b"), c = connect("c");
	const auto prefix = length_prefix(FrameReader::kMostLength + 1);
	a.send(wire(*frame_to(kBroadcast, kA, '1')));
	a.send(Bytes(prefix.begin(), prefix.end()));
	a.send(Bytes(1000, 0));
	EXPECT_TRUE(until([&] { return !attachment("a").connected; }));
	b.send(frame_to(kBroadcast, kB, '2'));
	EXPECT_TRUE(until([&] { return c.take() == "12"; })) << c.take();
	// A guest may connect again.
	Client again = connect("a");
	again.send(frame_to(kBroadcast, kA, '3'));
	EXPECT_TRUE(until([&] { return c.take() == "123"; })) << c.take();
}

// If a guest never reads, frames for it are dropped as a whole beyond the limit. Traffic of others
// continues.
TEST_F(EthernetGuestAttachment, FramesToAGuestThatDoesNotReadAreDroppedAndOtherGuestsAreUnaffected)
{
	Client a = connect("a"), b = connect("b"), c = connect("c");
	constexpr int frames = 900;
	for (int i = 0; i < frames; ++i) {
		a.send(frame_to(kBroadcast, kA, 'x', 1000));
		loop.poll();
		c.take();
	}
	EXPECT_TRUE(until([&] { return c.take().size() == frames; })) << c.take().size();
	const auto discarded = counters("b").rcv_discards;
	EXPECT_GT(discarded, 100u);
	EXPECT_EQ(counters("c").rcv_discards, 0u);
	// The frames that were kept are complete, and more follow once the guest reads.
	EXPECT_TRUE(until([&] { return b.take().size() == frames - discarded; }))
		<< b.take().size();
	a.send(frame_to(kBroadcast, kA, 'y'));
	EXPECT_TRUE(until([&] { return b.take().back() == 'y'; }));
}

// The limit of a slice counts frames, not bytes, so that other tasks run after a number of frames,
// however short they are.
TEST_F(EthernetGuestAttachment, BurstsOfShortFramesAreProcessedInBatches)
{
	Client a = connect("a"), b = connect("b");
	b.send(frame_to(kBroadcast, kB));
	EXPECT_TRUE(until([&] { return counters("b").xmit_frames == 1; }));
	constexpr std::size_t frames = 3000;
	Bytes bytes;
	std::string fillers;
	for (std::size_t i = 0; i < frames; ++i) {
		const Bytes one = wire(*frame_to(kB, kA, static_cast<std::uint8_t>(i), 1));
		bytes.insert(bytes.end(), one.begin(), one.end());
		fillers += static_cast<char>(i);
	}
	a.send(bytes);
	std::size_t most = 0, before = 0;
	// This task runs once in each slice.
	const std::function<void()> look = [&] {
		const std::size_t now = counters("a").xmit_frames;
		most = std::max(most, now - before);
		before = now;
		if (now < frames)
			loop.post(look);
	};
	loop.post(look);
	EXPECT_TRUE(until([&] { return before == frames; }));
	EXPECT_LE(most, 256u);
	EXPECT_TRUE(until([&] { return b.take() == fillers; }));
}

TEST_F(EthernetGuestAttachment, SecondGuestIsRefusedWhileTheFirstIsConnected)
{
	Client first = connect("a");
	Client second(directory / "a");
	EXPECT_TRUE(until([&] { return second.closed(); }));
	EXPECT_FALSE(first.closed());
	// The new client is accepted if the first one has disconnected, even before the server has
	// noticed.
	{
		const Client gone = std::move(first);
	}
	Client third(directory / "a");
	EXPECT_TRUE(until([&] {
		third.send(frame_to(kBroadcast, kA));
		return counters("a").xmit_frames > 0;
	}));
	EXPECT_FALSE(third.closed());
}

TEST_F(EthernetGuestAttachment, GuestCanReconnectAfterItsAttachmentWasRemovedAndAddedAgain)
{
	Client a = connect("a"), b = connect("b");
	EXPECT_THROW(network->remove_switch("lan"), std::invalid_argument);
	EXPECT_THROW(network->add_guest("a", "lan", directory / "other", {}),
		     std::invalid_argument);
	EXPECT_THROW(network->add_guest("d", "none", directory / "d", {}), std::invalid_argument);
	EXPECT_FALSE(std::filesystem::exists(directory / "d"));
	EXPECT_THROW(network->add_guest("d", "lan", directory / "a", {}), std::system_error);
	network->remove_attachment("a");
	EXPECT_TRUE(until([&] { return a.closed(); }));
	network->add_guest("a", "lan", directory / "a", {});
	EXPECT_EQ(attachment("a").link.name, "a-lan/1");
	Client again = connect("a");
	again.send(frame_to(kBroadcast, kA, 'x'));
	EXPECT_TRUE(until([&] { return b.take() == "x"; }));
}

// Guests that disconnect while frames for them are in flight do not affect others.
TEST_F(EthernetGuestAttachment, DisconnectingGuestsDoNotAffectOtherGuests)
{
	Client a = connect("a"), c = connect("c");
	for (int i = 0; i < 50; ++i) {
		Client b = connect("b");
		for (int j = 0; j < 20; ++j)
			a.send(frame_to(kBroadcast, kA, 'x', 5000));
		loop.poll();
		c.take();
		{
			const Client gone = std::move(b);
		}
		ASSERT_TRUE(until([&] { return !attachment("b").connected; }));
	}
	EXPECT_TRUE(until([&] { return c.take().size() == 1000; })) << c.take().size();
}

} // namespace
} // namespace weft::ethernet
