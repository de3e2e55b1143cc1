// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the channel between a card and its Ethernet segment: the order of frames, the limits, and
// the effects of opening and closing the channel at either end.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "net/ethernet/card_attachment.hpp"
#include "net/ethernet/channel.hpp"
#include "net/ethernet/network.hpp"
#include "nodes.hpp"

namespace weft::ethernet
{
namespace
{

class EthernetChannel : public ::testing::Test
{
public:
	void open_card()
	{
		card.emplace(channel, Channel::kCard, loop,
			     [this](const FramePtr &frame) { arrived.push_back(frame); });
	}
	static FramePtr some_frame(std::uint8_t filler, std::size_t size = 46)
	{
		return frame_to(kBroadcast, 0x020000000001, filler, size);
	}

	VirtualEnvironment environment;
	Loop loop{"test", Loop::Mode::manual, environment};
	Node other{"other"};
	const std::shared_ptr<Channel> channel = std::make_shared<Channel>();
	CardAttachment place{loop, "card", channel};
	Link link{loop, place.port(), other.port, {}, 1};
	std::vector<FramePtr> arrived;
	std::optional<Channel::End> card;
};

TEST_F(EthernetChannel, FramesArriveInOrderInBothDirections)
{
	open_card();
	EXPECT_TRUE(place.connected());
	for (std::uint8_t i = 0; i < 200; ++i) {
		EXPECT_TRUE(card->send(some_frame(i)));
		other.port.send(some_frame(i));
	}
	ASSERT_TRUE(loop.run_until(
		[&] { return other.arrived.size() == 200 && arrived.size() == 200; }));
	for (std::uint8_t i = 0; i < 200; ++i) {
		EXPECT_EQ(other.arrived[i]->back(), i);
		EXPECT_EQ(arrived[i]->back(), i);
	}
}

// The frames for a card whose loop does not run are limited. Frames beyond the limit are dropped
// and counted.
TEST_F(EthernetChannel, NumberOfQueuedBytesIsLimited)
{
	open_card();
	const std::size_t each = some_frame(0, 1000)->size() + Channel::kOverhead;
	const std::size_t most = Channel::kMostQueued / each;
	for (std::size_t i = 0; i < most + 10; ++i)
		other.port.send(some_frame(0, 1000));
	EXPECT_EQ(place.port().counters.rcv_discards, 10u);
	ASSERT_TRUE(loop.run_until([&] { return arrived.size() == most; }));
	other.port.send(some_frame(7));
	ASSERT_TRUE(loop.run_until([&] { return arrived.size() == most + 1; }));
	EXPECT_EQ(place.port().counters.rcv_discards, 10u);
}

// Frames that wait for a card that disconnects are not delivered to the next one.
TEST_F(EthernetChannel, FramesForADisconnectedCardAreNotDeliveredToTheNextCard)
{
	other.port.send(some_frame('a'));
	EXPECT_FALSE(place.connected());
	EXPECT_EQ(place.port().counters.rcv_discards, 1u);
	open_card();
	other.port.send(some_frame('b'));
	card.reset();
	open_card();
	other.port.send(some_frame('c'));
	ASSERT_TRUE(loop.run_until([&] { return !arrived.empty(); }));
	ASSERT_EQ(arrived.size(), 1u);
	EXPECT_EQ(arrived[0]->back(), 'c');
	EXPECT_THROW(Channel::End(channel, Channel::kCard, loop, [](const FramePtr &) {}),
		     std::logic_error);
}

TEST_F(EthernetChannel, ReaderThatTakesFramesDeterminesWhenTheSenderHasRoom)
{
	unsigned calls = 0;
	Channel::End reader(channel, Channel::kCard, loop,
			    Channel::End::Handlers{.frames = [&] { calls++; }});
	EXPECT_EQ(reader.take(), nullptr);
	const std::size_t most =
		Channel::kMostQueued / (some_frame(0, 1000)->size() + Channel::kOverhead);
	for (std::size_t i = 0; i < most + 1; ++i)
		other.port.send(some_frame(1, 1000));
	EXPECT_EQ(place.port().counters.rcv_discards, 1u);
	ASSERT_TRUE(loop.run_until([&] { return calls != 0; }));
	std::size_t taken = 0;
	while (reader.take())
		taken++;
	EXPECT_EQ(taken, most);
	for (std::size_t i = 0; i < most; ++i)
		other.port.send(some_frame(2, 1000));
	EXPECT_EQ(place.port().counters.rcv_discards, 1u);
	EXPECT_EQ(reader.take()->back(), 2);
}

// The change is reported after the frames that were sent before it.
TEST_F(EthernetChannel, OpeningAndClosingIsReportedToTheOtherEnd)
{
	open_card();
	std::string events;
	card.reset();
	const auto second = std::make_shared<Channel>();
	Channel::End end(second, Channel::kNetwork, loop,
			 Channel::End::Handlers{.receive = [&](const FramePtr &) { events += 'f'; },
						.peer_changed = [&] { events += 'c'; }});
	card.emplace(second, Channel::kCard, loop, [](const FramePtr &) {});
	ASSERT_TRUE(loop.run_until([&] { return events == "c"; }));
	for (unsigned i = 0; i < 100; ++i)
		card->send(some_frame(0));
	card.reset();
	ASSERT_TRUE(loop.run_until([&] { return events.size() == 102; }));
	EXPECT_EQ(events, "c" + std::string(100, 'f') + "c");
}

// The attachment of a card may be removed and added again while the card stays.
TEST(EthernetNetworkCards, CardCanBeDetachedFromTheNetworkAndReattached)
{
	VirtualEnvironment environment;
	Reactor reactor("test", Reactor::Drive::manual, environment);
	Network network(1, &reactor);
	Loop loop("card", reactor);
	const auto channel = std::make_shared<Channel>();
	Channel::End card(channel, Channel::kCard, loop, [](const FramePtr &) {});
	network.add_switch("lan");
	network.add_card("a/eth0", "lan", channel, {});
	EXPECT_TRUE(network.state().attachments.at(0).connected);
	EXPECT_TRUE(network.state().attachments.at(0).socket.empty());
	EXPECT_TRUE(card.send(frame_to(kBroadcast, 0x020000000001)));
	network.remove_attachment("a/eth0");
	EXPECT_FALSE(card.send(frame_to(kBroadcast, 0x020000000001)));
	network.add_card("a/eth0", "lan", channel, {});
	EXPECT_TRUE(card.peer_is_attached());
}

// A busy handler on one Ethernet does not delay another Ethernet.
TEST(EthernetNetwork, BusySegmentDoesNotDelayOtherSegments)
{
	Network network(1);
	for (const std::string name : {"busy", "idle"}) {
		network.add_switch(name);
		network.add_card(name + "/card", name, std::make_shared<Channel>(), {});
	}
	// The last reference is dropped on the loop of its segment, which blocks there.
	std::promise<void> reached, over;
	network.set_capture("busy/card", std::shared_ptr<Capture>(nullptr, [&](Capture *) {
				    reached.set_value();
				    over.get_future().wait();
			    }));
	std::thread busy([&] { network.set_capture("busy/card", nullptr); });
	reached.get_future().wait();
	auto idle = std::async(std::launch::async, [&] {
		network.set_link("idle/card", {});
		network.remove_attachment("idle/card");
		network.remove_switch("idle");
	});
	EXPECT_EQ(idle.wait_for(std::chrono::seconds(20)), std::future_status::ready);
	over.set_value();
	busy.join();
	idle.get();
}

} // namespace
} // namespace weft::ethernet
