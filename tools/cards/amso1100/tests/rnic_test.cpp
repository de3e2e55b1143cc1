// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the RNIC's message queues as its driver uses them, and the RNIC as an IP host on the
// Ethernet.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hw/amso1100/messages.hpp>
#include <hw/amso1100/registers.hpp>

#include "cards/amso1100/testing/driver.hpp"
#include "net/ethernet/channel.hpp"
#include "net/tcp/wire.hpp"

namespace weft::amso1100
{
namespace
{

namespace wire = hw::amso1100;
using ethernet::Frame;
using ethernet::FramePtr;
using wire::MessageId;
using wire::Status;

constexpr std::uint32_t kAddress = 0x0a000001, kPeer = 0x0a000002;
constexpr tcp::Mac kPeerMac = 0x020000000002;

struct Fixture {
	VirtualEnvironment environment;
	Reactor reactor{"test", Reactor::Drive::manual, environment};
	const std::shared_ptr<ethernet::Channel> channel = std::make_shared<ethernet::Channel>();
};

class Amso1100Rnic : public ::testing::Test, private Fixture, protected testing::Driver
{
protected:
	Amso1100Rnic() : Driver(Fixture::reactor, 77, Fixture::channel) {}

	std::vector<FramePtr> sent_;
	ethernet::Channel::End cable_{Fixture::channel, ethernet::Channel::kNetwork, host.loop(),
				      [this](const FramePtr &frame) { sent_.push_back(frame); }};
};

// INIT clears the words before the card writes anything. Then there is a reply with one hint, which
// is counted, and an interrupt.
TEST_F(Amso1100Rnic, ReplyToRnicOpenAddsOneHostHintAndRaisesAnInterrupt)
{
	initialise();
	EXPECT_EQ(word(kHintCount), 0);
	EXPECT_EQ(word(kReplyWord), 0);
	EXPECT_EQ(word(kEventWord), 0);
	EXPECT_FALSE(host.intx());
	EXPECT_NE(open(), 0u);
	const auto reply = host.memory(kReplies, wire::message_size);
	EXPECT_EQ(load_be<std::uint64_t>(reply, wire::header::context), kContext);
	EXPECT_EQ(reply[wire::header::id], static_cast<std::byte>(MessageId::rnic_open));
	EXPECT_EQ(word(kHintCount), 1);
	EXPECT_EQ(host.read<std::uint32_t>(0, wire::reg::host_hint), 1u);
	EXPECT_EQ(host.read<std::uint32_t>(0, wire::reg::host_hint), wire::hint_none);
	EXPECT_TRUE(host.intx());
	host.write<std::uint32_t>(0, wire::reg::disr, host.read<std::uint32_t>(0, wire::reg::disr));
	EXPECT_FALSE(host.intx());
}

// With MSI there is one message until it is acknowledged, and another for later events.
TEST_F(Amso1100Rnic, MsiReplacesIntxIfEnabled)
{
	host.set_msix_enabled(true);
	const auto vector = static_cast<unsigned>(wire::Vector::rnic);
	initialise();
	const auto handle = open();
	EXPECT_EQ(host.take_interrupts(vector), 1u);
	EXPECT_FALSE(host.intx());
	ask(MessageId::rnic_query, {{0x10, handle}});
	EXPECT_EQ(host.take_interrupts(vector), 0u);
	host.write<std::uint32_t>(0, wire::reg::disr, wire::disr_hints);
	EXPECT_EQ(host.take_interrupts(vector), 0u);
	ask(MessageId::rnic_query, {{0x10, handle}});
	EXPECT_EQ(host.take_interrupts(vector), 1u);
	EXPECT_EQ(host.take_interrupts(static_cast<unsigned>(wire::Vector::network)), 0u);
}

TEST_F(Amso1100Rnic, RnicQueryReturnsTheVendorIdAndTheUserContext)
{
	initialise();
	const auto handle = open();
	const auto reply = ask(MessageId::rnic_query, {{0x10, handle}});
	EXPECT_EQ(result(reply), Status::ok);
	EXPECT_EQ(load_be<std::uint64_t>(reply, wire::rnic_query::user_context), 0x1100000022u);
	EXPECT_EQ(load_be<std::uint32_t>(reply, wire::rnic_query::vendor_id), wire::pci_vendor_id);
	EXPECT_EQ(result(ask(MessageId::rnic_query, {{0x10, handle + 1}})), Status::invalid_rnic);
	EXPECT_EQ(result(ask(static_cast<MessageId>(13), {{0x10, handle}})),
		  Status::not_implemented);
	EXPECT_EQ(result(ask(MessageId::rnic_open)), Status::in_use);
	EXPECT_EQ(result(ask(MessageId::rnic_close, {{0x10, handle}})), Status::ok);
	EXPECT_EQ(result(ask(MessageId::rnic_query, {{0x10, handle}})), Status::invalid_rnic);
}

// The RNIC is a separate IP host: it answers ARP and ping for its address with its own hardware
// address, until the address is removed.
TEST_F(Amso1100Rnic, RnicAnswersArpAndPingForItsConfiguredAddresses)
{
	initialise();
	const auto handle = open();
	EXPECT_EQ(configure(handle, 1, kAddress), Status::ok);
	EXPECT_EQ(configure(handle, 1, kAddress), Status::address_in_use);
	EXPECT_EQ(configure(handle, 1, 0), Status::invalid_address);
	EXPECT_EQ(configure(handle, 9, kAddress), Status::invalid_modifier);
	EXPECT_EQ(configure(handle, 2, kPeer), Status::address_not_available);
	ASSERT_TRUE(host.loop().run_until([&] { return !sent_.empty(); }));
	sent_.clear(); // the announcement of the address

	const auto request = [&] {
		Frame frame = tcp::encode({tcp::kBroadcast, kPeerMac, tcp::kTypeArp},
					  tcp::Arp{false, kPeerMac, 0, kPeer, kAddress});
		cable_.send(std::make_shared<const Frame>(std::move(frame)));
	};
	request();
	ASSERT_TRUE(host.loop().run_until([&] { return !sent_.empty(); }));
	const auto answer = tcp::parse_arp(tcp::View(*sent_[0]).subspan(tcp::kEthernetHeader));
	ASSERT_TRUE(answer);
	std::array<std::byte, 8> address;
	host.read_register(4, wire::page_base + wire::page::rdma_address, address);
	const tcp::Mac own = load_be<std::uint64_t>(address) >> 16;
	EXPECT_EQ(answer->sender_mac, own);
	EXPECT_EQ(answer->sender, kAddress);

	sent_.clear();
	tcp::Bytes echo{8, 0, 0, 0, 0, 1, 0, 1};
	const auto sum = tcp::checksum(echo);
	echo[2] = static_cast<std::uint8_t>(sum >> 8);
	echo[3] = static_cast<std::uint8_t>(sum);
	const tcp::Packet packet{kPeer, kAddress, tcp::kProtocolIcmp, echo};
	cable_.send(
		std::make_shared<const Frame>(tcp::encode({own, kPeerMac, tcp::kTypeIp}, packet)));
	ASSERT_TRUE(host.loop().run_until([&] { return !sent_.empty(); }));
	const auto pong = tcp::parse_packet(tcp::View(*sent_[0]).subspan(tcp::kEthernetHeader));
	ASSERT_TRUE(pong);
	EXPECT_EQ(pong->destination, kPeer);

	sent_.clear();
	EXPECT_EQ(configure(handle, 2, kAddress), Status::ok);
	request();
	EXPECT_EQ(configure(handle, 2, kAddress), Status::address_not_available);
	EXPECT_TRUE(sent_.empty());
}

// While the reply queue is full, replies and later requests are delayed. No reply is lost, and
// their order is kept.
TEST_F(Amso1100Rnic, FullReplyQueueDelaysRepliesWithoutLoss)
{
	initialise();
	std::uint16_t seen = 0;
	std::uint64_t asked = 0, answered = 0;
	const auto taken = [&] { return word(kRequestWord) == produced; };
	const auto post = [&] {
		for (unsigned i = 0; i < wire::request_entries - 2; ++i)
			fill(MessageId::rnic_query, {{0x10, 0}}, ++asked);
		ring();
	};
	const auto read_all = [&] {
		for (; seen != word(kReplyWord);
		     seen = static_cast<std::uint16_t>((seen + 1) % wire::reply_entries))
			EXPECT_EQ(load_be<std::uint64_t>(
					  host.memory(kReplies + seen * wire::message_size, 16),
					  wire::header::context),
				  ++answered);
		put<std::uint16_t>(reply_shared + wire::shared::index, seen);
	};
	for (unsigned round = 0; round < 2; ++round) {
		post();
		ASSERT_TRUE(host.loop().run_until(taken));
	}
	post();
	ASSERT_TRUE(
		host.loop().run_until([&] { return word(kReplyWord) == wire::reply_entries - 1; }));
	host.loop().poll();
	EXPECT_FALSE(taken());
	EXPECT_EQ(word(kReplyWord), wire::reply_entries - 1);
	read_all();
	ASSERT_TRUE(host.loop().run_until(
		[&] { return word(kReplyWord) == asked % wire::reply_entries; }));
	read_all();
	EXPECT_EQ(answered, asked);
	EXPECT_EQ(word(kHintCount), asked);
	EXPECT_TRUE(taken());
}

// Requests without a context get no reply, and requests before INIT or after TERM are ignored. An
// invalid index is not used.
TEST_F(Amso1100Rnic, RequestsBeforeTheInitMessageOrAfterTheTermMessageAreIgnored)
{
	fill(MessageId::rnic_open);
	ring();
	host.loop().poll();
	EXPECT_EQ(word(kReplyWord), 0x0100);
	produced = 1;
	initialise();
	fill(MessageId::rnic_open, {}, 0);
	ring();
	ASSERT_TRUE(host.loop().run_until([&] { return word(kRequestWord) == produced; }));
	EXPECT_EQ(word(kReplyWord), 0);
	put<std::uint16_t>(shared + wire::shared::index, wire::request_entries);
	host.loop().poll();
	EXPECT_EQ(word(kRequestWord), produced);
	fill(MessageId::term, {}, 0);
	ring();
	host.loop().poll();
	produced = 0;
	put_word(kReplyWord, 0x0100);
	fill(MessageId::rnic_open);
	ring();
	host.loop().poll();
	EXPECT_EQ(word(kReplyWord), 0x0100);
}

// A host that was killed sends no TERM. The INIT of the next host restarts the RNIC, whatever its
// state is.
TEST_F(Amso1100Rnic, InitRestartsARunningRnic)
{
	initialise();
	open();
	produced = 0;
	initialise();
	EXPECT_NE(open(), 0u);
}

// The same applies if the last host had sent only INIT, so that the index has not changed.
TEST_F(Amso1100Rnic, SecondInitRestartsAnRnicThatHasNotBeenOpened)
{
	initialise();
	produced = 0;
	put_word(kRequestWord, 0x0100);
	initialise();
	EXPECT_NE(open(), 0u);
}

// The addresses in INIT are invalid: nothing is written, and the card continues to work.
TEST_F(Amso1100Rnic, InitWithInvalidQueueAddressesDoesNotWriteToHostMemory)
{
	fill(MessageId::init, {{0x10, 0xffffffff}}, 0);
	fill(MessageId::rnic_open);
	ring();
	host.loop().poll();
	EXPECT_EQ(word(kReplyWord), 0x0100);
	EXPECT_FALSE(host.intx());
}

} // namespace
} // namespace weft::amso1100
