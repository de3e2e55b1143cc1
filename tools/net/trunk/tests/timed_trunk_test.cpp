// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the ends of a trunk in virtual time. The test itself carries the frames between them.
#include "net/trunk/timed_trunk.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "net/fabric/tests/test_node.hpp"

namespace weft::trunk
{

namespace
{

using namespace fabric;
using fabric::testing::PacketNode;
using fabric::testing::ud_packet;
using Bytes = std::vector<std::byte>;

// A node, linked to the port that represents the far end of the trunk.
struct TimedSide {
	explicit TimedSide(Reactor &reactor) : loop("trunks", reactor), fabric(1, &reactor) {}

	Loop loop;
	Fabric fabric;
	Port &port = fabric.add_port("node/1");
	Port &far = fabric.add_port("trunk/1");
	Link &link = fabric.connect(port, far);
	PacketNode node{port};
	std::vector<Bytes> sent;
	TimedTrunk trunk{loop, far, [this](std::span<const std::byte> frame) {
				 sent.emplace_back(frame.begin(), frame.end());
			 }};
};

class TimedTrunkTest : public ::testing::Test
{
public:
	// Runs everything that is due now.
	void run()
	{
		while (reactor.turn(Clock::time_point::min()) != 0) {
		}
	}
	// Carries what each side has sent so far to the other one. Returns the number of frames.
	std::size_t carry()
	{
		run();
		const auto from_a = std::exchange(a.sent, {}), from_b = std::exchange(b.sent, {});
		for (const Bytes &frame : from_a)
			EXPECT_EQ(b.trunk.arrive(frame), nullptr);
		for (const Bytes &frame : from_b)
			EXPECT_EQ(a.trunk.arrive(frame), nullptr);
		run();
		return from_a.size() + from_b.size();
	}
	void bring_up()
	{
		while (carry() != 0) {
		}
		ASSERT_TRUE(a.link.up() && b.link.up());
	}

	VirtualEnvironment environment;
	Reactor reactor{"test", Reactor::Drive::manual, environment};
	TimedSide a{reactor}, b{reactor};
};

TEST_F(TimedTrunkTest, LinkComesUpAndGoesDownOnlyWhenTheStateOfTheOtherEndHasArrived)
{
	run();
	EXPECT_FALSE(a.link.up() || b.link.up());
	bring_up();
	a.link.set_plugged(false);
	run();
	EXPECT_FALSE(a.link.up());
	EXPECT_TRUE(b.link.up());
	carry();
	EXPECT_FALSE(b.link.up());
}

TEST_F(TimedTrunkTest, CreditsReturnOnlyWithAFrameFromTheOtherEnd)
{
	bring_up();
	int sent = 0;
	const auto fill = [&] {
		for (;; ++sent) {
			Packet packet = ud_packet(1, 2, 64, static_cast<std::uint32_t>(sent));
			if (a.port.send(packet) != Sent::done)
				return;
		}
	};
	fill();
	EXPECT_EQ(sent, Port::kDefaultCredits);
	run();
	fill();
	EXPECT_EQ(sent, Port::kDefaultCredits); // the packets are on their way
	carry();
	fill();
	EXPECT_EQ(sent, Port::kDefaultCredits); // so are the credits
	carry();
	fill();
	EXPECT_EQ(sent, 2 * Port::kDefaultCredits);
}

TEST_F(TimedTrunkTest, MalformedFramesAndThoseOfAHandshakeAreRefused)
{
	bring_up();
	EXPECT_STREQ(a.trunk.arrive({}), "a malformed frame");
	const Buffer alive = make_frame(FrameType::alive);
	Bytes frame(alive.begin(), alive.end());
	EXPECT_EQ(a.trunk.arrive(frame), nullptr);
	EXPECT_STREQ(a.trunk.arrive(std::span(frame).first(7)), "a malformed frame");
	for (const std::size_t offset : {0u, 3u, 5u, 7u}) {
		Bytes wrong = frame;
		wrong[offset] = std::byte{1};
		EXPECT_STREQ(a.trunk.arrive(wrong), "a malformed frame") << offset;
	}
	for (const FrameType type :
	     {FrameType::hello, FrameType::proof, FrameType::bye, FrameType::ethernet}) {
		frame[4] = static_cast<std::byte>(type);
		EXPECT_STREQ(a.trunk.arrive(frame), "an unexpected frame");
	}
	frame[4] = std::byte{9};
	EXPECT_STREQ(a.trunk.arrive(frame), "a malformed frame");
}

} // namespace

} // namespace weft::trunk
