// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests Ethernet segments whose parts are in several daemons, with trunks over TCP between networks
// in one process.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.hpp"
#include "net/ethernet/network.hpp"
#include "net/ethernet/tests/nodes.hpp"
#include "net/fabric/fabric.hpp"
#include "net/trunk/ethernet_end.hpp"
#include "net/trunk/trunk.hpp"

namespace weft::trunk
{

namespace
{

using ethernet::Address;
using ethernet::Channel;
using ethernet::FramePtr;
using ethernet::frame_to;
using ethernet::kBroadcast;

Key shared_key()
{
	return Key(SecretBytes(Key::kLeastBytes, std::byte{1}));
}

bool becomes_true(const std::function<bool()> &condition)
{
	using namespace std::chrono_literals;
	Loop waiting("test", Loop::Mode::manual);
	Timer timer(waiting, [&] { timer.arm(1ms); });
	timer.arm(1ms);
	return waiting.run_until(condition, 30s);
}

// A host: the card's end of a channel, which stores the last bytes of the frames that arrive.
class Host
{
public:
	Host(Loop &loop, Address address) : loop_(loop), address_(address)
	{
		loop_.run([this] {
			end_.emplace(channel, Channel::kCard, loop_, [this](const FramePtr &frame) {
				const MutexLock lock(mutex_);
				fillers_ += static_cast<char>(frame->back());
			});
		});
	}
	~Host()
	{
		loop_.run([this] { end_.reset(); });
	}
	void send(Address to, char filler)
	{
		const auto frame = frame_to(to, address_, static_cast<std::uint8_t>(filler));
		loop_.run([&] { EXPECT_TRUE(end_->send(frame)); });
	}
	std::string fillers() const
	{
		const MutexLock lock(mutex_);
		return fillers_;
	}
	Address address() const { return address_; }

	const std::shared_ptr<Channel> channel = std::make_shared<Channel>();

private:
	Loop &loop_;
	const Address address_;
	mutable Mutex mutex_;
	std::string fillers_ WEFT_GUARDED_BY(mutex_);
	std::optional<Channel::End> end_;
};

// A daemon: the part of a segment with two hosts, and trunks to the other parts.
class Daemon
{
public:
	Daemon(std::string daemon_name, unsigned number)
	    : name(std::move(daemon_name)), one(cards_, 0x020000000001 + 0x100 * number),
	      two(cards_, 0x020000000002 + 0x100 * number)
	{
		network.add_switch("lan");
		network.add_card(name + "-1/eth0", "lan", one.channel, {}, 2 * number + 1);
		network.add_card(name + "-2/eth0", "lan", two.channel, {}, 2 * number + 2);
	}
	~Daemon() { trunks.clear(); }

	void start(Role role, const std::string &address, const Daemon &peer)
	{
		const bool first = name < peer.name;
		const auto near = fmt::format("lan@{}/{}", name, peer.name),
			   far = fmt::format("lan@{}/{}", peer.name, name);
		auto channel = std::make_shared<Channel>();
		if (attached(peer))
			network.remove_attachment(far);
		network.add_trunk({near, far, first, 2}, "lan", channel, {});
		trunks[peer.name] = std::make_unique<Trunk>(
			loop, channel,
			Config{first ? near : far, role, trunk::Address::parse(address)},
			shared_key());
	}
	bool attached(const Daemon &peer) const { return find(peer) != std::nullopt; }
	std::optional<ethernet::AttachmentState> find(const Daemon &peer) const
	{
		for (auto &each : network.state().attachments)
			if (each.name == fmt::format("lan@{}/{}", peer.name, name))
				return each;
		return std::nullopt;
	}
	bool connected(const Daemon &peer) const { return find(peer)->connected; }
	std::size_t addresses() const { return network.state().switches.at(0).addresses; }

	const std::string name;
	ethernet::Network network{1};
	Loop loop{"trunks"};

private:
	Loop cards_{"cards"};

public:
	Host one, two;
	std::map<std::string, std::unique_ptr<Trunk>> trunks;
};

void connect(Daemon &listener, Daemon &other)
{
	listener.start(Role::listens, "127.0.0.1:0", other);
	other.start(Role::connects, listener.trunks.at(other.name)->state().address, listener);
	ASSERT_TRUE(becomes_true(
		[&] { return listener.connected(other) && other.connected(listener); }));
}

class EthernetTrunks : public ::testing::Test
{
public:
	Daemon a{"a", 0}, b{"b", 1};
};

} // namespace

TEST_F(EthernetTrunks, HostsOfTwoDaemonsExchangeFrames)
{
	connect(a, b);
	a.one.send(kBroadcast, '1');
	EXPECT_TRUE(becomes_true([&] {
		return a.two.fillers() == "1" && b.one.fillers() == "1" && b.two.fillers() == "1";
	}));
	// The address of the first host has been learned.
	b.one.send(a.one.address(), '2');
	EXPECT_TRUE(becomes_true([&] { return a.one.fillers() == "2"; }));
	a.one.send(b.one.address(), '3');
	EXPECT_TRUE(becomes_true([&] { return b.one.fillers() == "13"; }));
	EXPECT_EQ(a.two.fillers() + "|" + b.two.fillers(), "1|1");
	EXPECT_EQ(a.find(b)->link.name, "lan@a/b-lan@b/a");
	EXPECT_EQ(b.find(a)->link.name, "lan@a/b-lan@b/a");
	EXPECT_EQ(a.find(b)->link.ends[1].counters.rcv_frames, 2u);
	EXPECT_EQ(b.find(a)->link.ends[0].counters.xmit_frames, 2u);
}

// The three daemons are connected in a triangle, and each frame arrives once.
TEST_F(EthernetTrunks, FramesArriveOnceInASegmentOfThreeDaemons)
{
	Daemon c("c", 2);
	connect(a, b);
	connect(a, c);
	connect(b, c);
	a.one.send(kBroadcast, '1');
	b.one.send(kBroadcast, '2');
	c.one.send(kBroadcast, '3');
	const auto all = [&](const Daemon &daemon) { return daemon.two.fillers().size() == 3; };
	EXPECT_TRUE(becomes_true([&] { return all(a) && all(b) && all(c); }));
	c.one.send(a.one.address(), '4');
	EXPECT_TRUE(becomes_true([&] { return a.one.fillers().ends_with('4'); }));
	a.one.send(c.one.address(), '5');
	EXPECT_TRUE(becomes_true([&] { return c.one.fillers().ends_with('5'); }));
	for (const Daemon *daemon : {&a, &b, &c}) {
		EXPECT_EQ(daemon->two.fillers().size(), 3u);
		EXPECT_EQ(daemon->addresses(), 3u);
	}
	EXPECT_EQ(b.one.fillers().size(), 2u);
}

TEST_F(EthernetTrunks, AddressesOfALostDaemonAreForgottenUntilItReturns)
{
	connect(a, b);
	const auto address = a.trunks.at("b")->state().address;
	b.one.send(kBroadcast, '1');
	EXPECT_TRUE(becomes_true([&] { return a.two.fillers() == "1"; }));
	a.one.send(kBroadcast, '2');
	EXPECT_TRUE(becomes_true([&] { return b.one.fillers() == "2"; }));
	EXPECT_EQ(a.addresses(), 2u);
	b.trunks.clear();
	EXPECT_TRUE(becomes_true([&] { return a.addresses() == 1; }));
	EXPECT_FALSE(a.connected(b));
	EXPECT_THAT(a.trunks.at("b")->state().last_reason, ::testing::HasSubstr("daemon exited"));
	const auto lost = a.find(b)->link.ends[1].counters.rcv_discards;
	a.one.send(b.one.address(), '3');
	EXPECT_TRUE(becomes_true([&] { return a.two.fillers() == "123"; })) << "flooded";
	EXPECT_EQ(a.find(b)->link.ends[1].counters.rcv_discards, lost + 1);
	b.start(Role::connects, address, a);
	EXPECT_TRUE(becomes_true([&] { return a.connected(b) && b.connected(a); }));
	a.one.send(b.one.address(), '4');
	EXPECT_TRUE(becomes_true([&] { return b.one.fillers() == "24"; }));
}

// Either half may be pulled or have faults.
TEST_F(EthernetTrunks, FramesAreDroppedWhileEitherHalfIsDown)
{
	connect(a, b);
	for (Daemon *const side : {&a, &b}) {
		const Daemon &peer = side == &a ? b : a;
		side->network.set_link(side->find(peer)->name, {false, {}});
		a.one.send(kBroadcast, 'x');
		b.one.send(kBroadcast, 'y');
		EXPECT_TRUE(becomes_true([&] {
			const auto link = side->find(peer)->link;
			return link.ends[0].counters.xmit_discards == 1 &&
			       link.ends[1].counters.xmit_discards == 1;
		}));
		side->network.set_link(side->find(peer)->name, {true, {}});
	}
	a.one.send(kBroadcast, '1');
	EXPECT_TRUE(becomes_true([&] { return b.one.fillers() == "1"; }));
	EXPECT_EQ(a.one.fillers(), "");
}

TEST_F(EthernetTrunks, TrunkOfALinkIsRefusedByTheTrunkOfASegment)
{
	a.start(Role::listens, "127.0.0.1:0", b);
	fabric::Fabric fabric;
	const Trunk other(b.loop, fabric.add_port("west/1"),
			  {"lan@a/b", Role::connects,
			   trunk::Address::parse(a.trunks.at("b")->state().address)},
			  shared_key());
	EXPECT_TRUE(becomes_true([&] {
		return other.state().last_reason.find("an Ethernet segment") != std::string::npos;
	}));
	EXPECT_THAT(a.trunks.at("b")->state().last_refusal,
		    ::testing::HasSubstr("one end connects a link of the fabric"));
	EXPECT_FALSE(a.connected(b));
}

// The end of a trunk without a connection.
class EthernetEndTest : public ::testing::Test
{
public:
	const char *take(FrameType type, std::size_t size)
	{
		const std::vector<std::byte> body(size, std::byte{0x02});
		return end.take({type, body});
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	const std::shared_ptr<Channel> channel = std::make_shared<Channel>();
	unsigned wakes = 0;
	EthernetEnd end{loop, channel, [this] { wakes++; }};
	std::optional<Channel::End> segment{std::in_place, channel, Channel::kNetwork, loop,
					    [this](const FramePtr &) { arrived++; }};
	unsigned arrived = 0;
};

TEST_F(EthernetEndTest, FramesOfAnotherKindOrLengthViolateTheProtocol)
{
	end.connected();
	EXPECT_EQ(take(FrameType::alive, 0), nullptr);
	EXPECT_EQ(take(FrameType::ethernet, ethernet::kLeastFrame), nullptr);
	EXPECT_EQ(take(FrameType::ethernet, ethernet::kMostFrame), nullptr);
	EXPECT_NE(take(FrameType::ethernet, ethernet::kLeastFrame - 1), nullptr);
	EXPECT_NE(take(FrameType::ethernet, ethernet::kMostFrame + 1), nullptr);
	EXPECT_NE(take(FrameType::alive, 1), nullptr);
	for (const auto type : {FrameType::packet, FrameType::credits, FrameType::link,
				FrameType::hello, FrameType::proof})
		EXPECT_NE(take(type, 64), nullptr);
	ASSERT_TRUE(loop.run_until([&] { return arrived == 2; }));
}

// The peer has to wait while the segment is busy, and the memory that it can use is limited.
TEST_F(EthernetEndTest, PeerThatFloodsFramesHasToWait)
{
	end.connected();
	unsigned taken = 0;
	for (; !end.full() && taken < 2000; ++taken)
		ASSERT_EQ(take(FrameType::ethernet, 1000), nullptr);
	EXPECT_LE(taken * (1000 + Channel::kOverhead), Channel::kMostQueued);
	EXPECT_GE(taken * (1000 + Channel::kOverhead),
		  Channel::kMostQueued - ethernet::kMostFrame - Channel::kOverhead - 1064);
	ASSERT_TRUE(loop.run_until([&] { return wakes != 0; }));
	EXPECT_FALSE(end.full());
	ASSERT_TRUE(loop.run_until([&] { return arrived == taken; }));
}

// If the connection is too slow, whole frames are dropped before the trunk.
TEST_F(EthernetEndTest, FramesForASlowConnectionAreLimitedInBytes)
{
	const auto frame = frame_to(kBroadcast, 1, 0, 986);
	EXPECT_FALSE(segment->send(frame)) << "there is no connection";
	end.connected();
	std::size_t queued = 0;
	while (segment->send(frame))
		queued++;
	EXPECT_EQ(queued, Channel::kMostQueued / (frame->size() + Channel::kOverhead));
	std::deque<Buffer> out;
	constexpr std::size_t room = 10000;
	const std::size_t bytes = end.serve(out, room);
	EXPECT_GE(bytes, room);
	EXPECT_LT(bytes, room + sizeof(FrameHeader) + frame->size());
	EXPECT_TRUE(segment->send(frame));
	end.disconnected();
	out.clear();
	end.connected();
	EXPECT_EQ(end.serve(out, room), 0u) << "frames for a lost peer";
}

} // namespace weft::trunk
