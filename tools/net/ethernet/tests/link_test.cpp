// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests Ethernet links: delivery, delay and order of frames, faults, and counters.
#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/ethernet/link.hpp"
#include "nodes.hpp"

namespace weft::ethernet
{
namespace
{

using namespace std::chrono_literals;

class EthernetLink : public ::testing::Test
{
public:
	void send(Node &from, std::uint8_t filler, std::size_t size = 46)
	{
		from.port.send(frame_to(kBroadcast, 0x020000000001, filler, size));
	}
	void send_each(const std::string &fillers)
	{
		for (const char filler : fillers)
			send(a, static_cast<std::uint8_t>(filler));
	}
	void set(const fabric::Faults &faults, bool up = true) { link.set({up, faults}); }
	void pass(Clock::duration time)
	{
		bool over = false;
		Timer timer(loop, [&] { over = true; });
		timer.arm(time);
		ASSERT_TRUE(loop.run_until([&] { return over; }, time + 1s));
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	Node a{"a"}, b{"b"};
	Link link{loop, a.port, b.port, {}, 1};
};

TEST_F(EthernetLink, FramesArriveInBothDirectionsAndAreCounted)
{
	send(a, 'x');
	send(b, 'y', 100);
	EXPECT_EQ(b.fillers(), "x");
	EXPECT_EQ(a.fillers(), "y");
	EXPECT_EQ(a.port.counters.xmit_frames, 1u);
	EXPECT_EQ(a.port.counters.xmit_bytes, 60u);
	EXPECT_EQ(a.port.counters.rcv_frames, 1u);
	EXPECT_EQ(a.port.counters.rcv_bytes, 114u);
	EXPECT_EQ(a.port.counters.rcv_group_frames, 1u);
}

TEST_F(EthernetLink, FramesSentWhileDownAreDroppedAndCounted)
{
	set({}, false);
	send(a, 'x');
	EXPECT_EQ(b.fillers(), "");
	EXPECT_EQ(a.port.counters.xmit_discards, 1u);
	EXPECT_EQ(a.port.counters.xmit_frames, 0u);
	set({});
	send(a, 'y');
	EXPECT_EQ(b.fillers(), "y");
}

// Taking a link down drops frames in flight, and their timer does nothing.
TEST_F(EthernetLink, LinkDownDropsFramesInFlight)
{
	fabric::Faults late{.delay = 5ms};
	set(late);
	send(a, 'x');
	set(late, false);
	set(late);
	pass(20ms);
	EXPECT_EQ(b.fillers(), "");
}

TEST_F(EthernetLink, DelayPreservesTheOrderOfFrames)
{
	set({.delay = 5ms, .jitter = 3ms});
	send_each("abcdef");
	pass(4ms);
	EXPECT_EQ(b.fillers(), "");
	pass(5ms);
	EXPECT_EQ(b.fillers(), "abcdef");
}

// Frames sent after the delay was removed do not overtake earlier ones.
TEST_F(EthernetLink, ReducingTheDelayDoesNotReorderFrames)
{
	set({.delay = 5ms});
	send(a, 'x');
	set({});
	send(a, 'y');
	EXPECT_EQ(b.fillers(), "");
	pass(6ms);
	EXPECT_EQ(b.fillers(), "xy");
}

TEST_F(EthernetLink, FrameLossMatchesTheConfiguredRate)
{
	set({.loss = 0.25});
	for (int i = 0; i < 4000; ++i)
		send(a, 'x');
	EXPECT_NEAR(static_cast<double>(b.arrived.size()), 3000, 150);
	EXPECT_EQ(a.port.counters.xmit_frames, 4000u);
	EXPECT_EQ(b.port.counters.rcv_fcs_errors, 4000u - b.arrived.size());
}

TEST_F(EthernetLink, CorruptFramesAreDroppedWithAnFcsError)
{
	set({.corruption = 1});
	send(a, 'x');
	EXPECT_EQ(b.fillers(), "");
	EXPECT_EQ(b.port.counters.rcv_fcs_errors, 1u);
}

// One bit outside the addresses is changed in each frame that arrives. The sender's frame is not
// modified.
TEST_F(EthernetLink, SilentCorruptionFlipsOnePayloadBit)
{
	set({.silent_corruption = 1});
	const FramePtr sent = frame_to(kBroadcast, 0x020000000001, 'x');
	const Frame before = *sent;
	for (int i = 0; i < 200; ++i)
		a.port.send(sent);
	EXPECT_EQ(*sent, before);
	for (const FramePtr &frame : b.arrived) {
		int bits = 0;
		for (std::size_t at = 0; at < frame->size(); ++at)
			bits += __builtin_popcount((*frame)[at] ^ before[at]);
		EXPECT_EQ(bits, 1);
		EXPECT_TRUE(std::equal(before.begin(), before.begin() + 12, frame->begin()));
	}
	EXPECT_EQ(b.arrived.size(), 200u);
}

TEST_F(EthernetLink, DuplicationDeliversFramesTwice)
{
	set({.duplication = 1});
	send_each("ab");
	EXPECT_EQ(b.fillers(), "aabb");
}

// A frame waits for the next one, which overtakes it. The last frame is sent after the wait,
// because none follows it.
TEST_F(EthernetLink, ReorderingSwapsFrames)
{
	set({.reordering = 1});
	send_each("ab");
	EXPECT_EQ(b.fillers(), "ba");
	send(a, 'c');
	EXPECT_EQ(b.fillers(), "ba");
	pass(11ms);
	EXPECT_EQ(b.fillers(), "bac");
}

TEST_F(EthernetLink, NumberOfQueuedBytesIsLimited)
{
	set({.delay = 1s});
	// For small frames, the overhead is most of the size.
	for (const std::size_t size : {kMostFrame, kLeastFrame}) {
		const std::size_t fit = Link::kMostInFlight / (size + Link::kOverhead);
		const std::uint64_t discarded = a.port.counters.xmit_discards;
		b.arrived.clear();
		for (std::size_t i = 0; i < fit + 10; ++i)
			send(a, 'x', size - kLeastFrame);
		EXPECT_EQ(a.port.counters.xmit_discards, discarded + 10);
		pass(2s);
		EXPECT_EQ(b.arrived.size(), fit);
	}
	send(a, 'y');
	pass(2s);
	EXPECT_EQ(b.fillers().back(), 'y');
}

// Frames in one direction do not count towards the limit of the other direction.
TEST_F(EthernetLink, EachDirectionHasItsOwnQueueLimit)
{
	set({.delay = 1s});
	while (a.port.counters.xmit_discards == 0)
		send(a, 'x', kMostFrame - kLeastFrame);
	send(b, 'y');
	EXPECT_EQ(b.port.counters.xmit_discards, 0u);
	pass(2s);
	EXPECT_EQ(a.fillers(), "y");
}

// Frames lost with a link do not delay frames that are sent when it is up again.
TEST_F(EthernetLink, FramesLostAtLinkDownDoNotDelayFramesSentAfterLinkUp)
{
	set({.delay = 60s});
	send(a, 'x');
	set({.delay = 60s}, false);
	set({.delay = 1ms});
	send(a, 'y');
	pass(2ms);
	EXPECT_EQ(b.fillers(), "y");
}

// A frame that waits to be overtaken is still delayed and duplicated.
TEST_F(EthernetLink, ReorderingFaultDoesNotCancelTheDelayOrDuplicationOfAFrame)
{
	set({.delay = 100ms, .reordering = 1});
	send(a, 'x');
	pass(50ms);
	EXPECT_EQ(b.fillers(), "");
	pass(100ms);
	EXPECT_EQ(b.fillers(), "x");
	set({.duplication = 1, .reordering = 1});
	b.arrived.clear();
	send(a, 'a');
	pass(20ms);
	EXPECT_EQ(b.fillers(), "aa");
}

// If many bytes are due at once, they are delivered in parts, so that the readers' output is
// written in between.
TEST_F(EthernetLink, ManyFramesDueAtTheSameTimeAreDeliveredInSeveralEventLoopIterations)
{
	set({.delay = 5ms});
	for (int i = 0; i < 100; ++i)
		send(a, 'x', kMostFrame - kLeastFrame);
	ASSERT_TRUE(loop.run_until([&] { return !b.arrived.empty(); }, 1s));
	EXPECT_LT(b.arrived.size(), 20u);
	pass(1ms);
	EXPECT_EQ(b.arrived.size(), 100u);
}

TEST_F(EthernetLink, SameSeedGivesTheSameFaults)
{
	Node c("c"), d("d");
	Link other(loop, c.port, d.port, {}, 1);
	const LinkSettings settings{true, {.loss = 0.5}};
	link.set(settings);
	other.set(settings);
	for (char filler = 'a'; filler <= 'z'; ++filler) {
		send(a, static_cast<std::uint8_t>(filler));
		send(c, static_cast<std::uint8_t>(filler));
	}
	EXPECT_EQ(b.fillers(), d.fillers());
	EXPECT_LT(b.arrived.size(), 26u);
}

} // namespace
} // namespace weft::ethernet
