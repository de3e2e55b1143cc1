// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The RNIC's message queues as its driver sees them, and its station on the cable.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hw/ammasso/messages.hpp>
#include <hw/ammasso/registers.hpp>

#include "ammasso/bytes.hpp"
#include "cards/model.hpp"
#include "ethernet/channel.hpp"
#include "pci/testing/fake_host.hpp"
#include "tcp/wire.hpp"

namespace weft::ammasso
{
namespace
{

namespace wire = hw::ammasso;
using ethernet::Frame;
using ethernet::FramePtr;
using wire::MessageId;
using wire::Status;

// In the host's memory, as an old driver has its words: at no multiple of four.
constexpr std::uint64_t kHintCount = 0x2001a, kRequestWord = 0x2001c, kReplyWord = 0x2001e,
			kEventWord = 0x20020;
constexpr std::uint64_t kReplies = 0x30000, kEvents = 0x40000;
constexpr std::uint64_t kContext = 0x80563412808800ff;
constexpr std::uint32_t kAddress = 0x0a000001, kPeer = 0x0a000002, kMask = 0xffffff00;
constexpr tcp::Mac kPeerMac = 0x020000000002;

class AmmassoRnic : public ::testing::Test
{
protected:
	AmmassoRnic()
	{
		const cards::Model *model = cards::find_model("ammasso");
		if (!model)
			throw std::logic_error("nobody has registered the model");
		card_ = model->make({.name = "node1",
				     .guid = 77,
				     .ports = {},
				     .ethernet = channel_,
				     .flags = {}},
				    &host_.loop());
		host_.plug(*card_->function());
		host_.write<std::uint32_t>(0, wire::reg::idis, 0);
		shared_ = wire::page_base + page(wire::page::q0_shared);
		requests_ = wire::page_base + page(wire::page::q0_pool_start);
		reply_shared_ = wire::page_base + page(wire::page::q1_shared);
		for (const std::uint64_t word : {kHintCount, kRequestWord, kReplyWord, kEventWord})
			put_word(word, 0x0100);
	}
	~AmmassoRnic() override { host_.unplug(); }

	template<typename T>
	void put(std::uint64_t offset, T value)
	{
		std::array<std::byte, sizeof(T)> bytes;
		store_be<T>(bytes, 0, value);
		host_.write_register(4, offset, bytes);
	}
	std::uint32_t page(std::size_t offset)
	{
		std::array<std::byte, 4> bytes;
		host_.read_register(4, wire::page_base + offset, bytes);
		return load_be<std::uint32_t>(bytes);
	}
	std::uint16_t word(std::uint64_t address)
	{
		return load_be<std::uint16_t>(host_.memory(address, 2));
	}
	void put_word(std::uint64_t address, std::uint16_t value)
	{
		store_be<std::uint16_t>(host_.memory(address, 2), 0, value);
	}

	using Words = std::vector<std::pair<std::size_t, std::uint32_t>>;
	// Puts a request with these words into its slot, garbage around it, without telling of it.
	void fill(MessageId id, const Words &words = {}, std::uint64_t context = kContext)
	{
		std::array<std::byte, wire::message_size> message;
		message.fill(std::byte{0xee});
		message[wire::header::id] = static_cast<std::byte>(id);
		store_be<std::uint64_t>(message, wire::header::context, context);
		for (const auto &[offset, value] : words)
			store_be<std::uint32_t>(message, offset, value);
		host_.write_register(4, requests_ + produced_ * wire::message_size, message);
		produced_ = static_cast<std::uint16_t>((produced_ + 1) % wire::request_entries);
	}
	void tell() { put<std::uint16_t>(shared_ + wire::shared::index, produced_); }
	void initialise()
	{
		const auto low = [](std::uint64_t value) {
			return static_cast<std::uint32_t>(value);
		};
		fill(MessageId::init,
		     {{0x10, 0},
		      {0x14, low(kHintCount)},
		      {0x18, 0},
		      {0x1c, low(kRequestWord)},
		      {0x20, 0},
		      {0x24, low(kReplyWord)},
		      {0x28, 0},
		      {0x2c, low(kReplies)},
		      {0x30, 0},
		      {0x34, low(kEventWord)},
		      {0x38, 0},
		      {0x3c, low(kEvents)}},
		     0);
		tell();
		ASSERT_TRUE(
			host_.loop().run_until([&] { return word(kRequestWord) == produced_; }));
	}
	// The reply's slot, once it is there.
	std::span<std::byte> ask(MessageId id, const Words &words = {})
	{
		const std::uint16_t before = word(kReplyWord);
		fill(id, words);
		tell();
		EXPECT_TRUE(host_.loop().run_until([&] { return word(kReplyWord) != before; }));
		put<std::uint16_t>(reply_shared_ + wire::shared::index, word(kReplyWord));
		return host_.memory(kReplies + before * wire::message_size, wire::message_size);
	}
	static Status result(std::span<const std::byte> reply)
	{
		return static_cast<Status>(reply[wire::header::result]);
	}
	std::uint32_t open()
	{
		const auto reply =
			ask(MessageId::rnic_open, {{0x10, 0x11}, {0x14, 0x22}, {0x18, 0x800000}});
		EXPECT_EQ(result(reply), Status::ok);
		return load_be<std::uint32_t>(reply, wire::rnic_open::reply_handle);
	}
	Status configure(std::uint32_t handle, std::uint32_t option, std::uint32_t address)
	{
		return result(
			ask(MessageId::rnic_setconfig,
			    {{0x10, handle}, {0x14, option}, {0x18, address}, {0x1c, kMask}}));
	}

	testing::FakeHost host_;
	std::vector<FramePtr> sent_;
	const std::shared_ptr<ethernet::Channel> channel_ = std::make_shared<ethernet::Channel>();
	ethernet::Channel::End cable_{channel_, ethernet::Channel::kNetwork, host_.loop(),
				      [this](const FramePtr &frame) { sent_.push_back(frame); }};
	std::unique_ptr<cards::Card> card_;
	std::uint64_t shared_ = 0, requests_ = 0, reply_shared_ = 0;
	std::uint16_t produced_ = 0;
};

// The words are cleared before anything is said; then a reply comes with one hint, counted, and an
// interrupt.
TEST_F(AmmassoRnic, IsInitialisedAndOpened)
{
	initialise();
	EXPECT_EQ(word(kHintCount), 0);
	EXPECT_EQ(word(kReplyWord), 0);
	EXPECT_EQ(word(kEventWord), 0);
	EXPECT_FALSE(host_.intx());
	EXPECT_NE(open(), 0u);
	const auto reply = host_.memory(kReplies, wire::message_size);
	EXPECT_EQ(load_be<std::uint64_t>(reply, wire::header::context), kContext);
	EXPECT_EQ(reply[wire::header::id], static_cast<std::byte>(MessageId::rnic_open));
	EXPECT_EQ(word(kHintCount), 1);
	EXPECT_EQ(host_.read<std::uint32_t>(0, wire::reg::host_hint), 1u);
	EXPECT_EQ(host_.read<std::uint32_t>(0, wire::reg::host_hint), wire::hint_none);
	EXPECT_TRUE(host_.intx());
	host_.write<std::uint32_t>(0, wire::reg::disr,
				   host_.read<std::uint32_t>(0, wire::reg::disr));
	EXPECT_FALSE(host_.intx());
}

TEST_F(AmmassoRnic, SaysWhatItIs)
{
	initialise();
	const auto handle = open();
	const auto reply = ask(MessageId::rnic_query, {{0x10, handle}});
	EXPECT_EQ(result(reply), Status::ok);
	EXPECT_EQ(load_be<std::uint64_t>(reply, wire::rnic_query::user_context), 0x1100000022u);
	EXPECT_EQ(load_be<std::uint32_t>(reply, wire::rnic_query::vendor_id), wire::pci_vendor_id);
	EXPECT_EQ(result(ask(MessageId::rnic_query, {{0x10, handle + 1}})), Status::invalid_rnic);
	EXPECT_EQ(result(ask(static_cast<MessageId>(6), {{0x10, handle}})),
		  Status::not_implemented);
	EXPECT_EQ(result(ask(MessageId::rnic_open)), Status::in_use);
	EXPECT_EQ(result(ask(MessageId::rnic_close, {{0x10, handle}})), Status::ok);
	EXPECT_EQ(result(ask(MessageId::rnic_query, {{0x10, handle}})), Status::invalid_rnic);
}

// A station of its own: it answers for its address with the RNIC's hardware address, and pings,
// until the address goes.
TEST_F(AmmassoRnic, AnswersForItsAddresses)
{
	initialise();
	const auto handle = open();
	EXPECT_EQ(configure(handle, 1, kAddress), Status::ok);
	EXPECT_EQ(configure(handle, 1, kAddress), Status::address_in_use);
	EXPECT_EQ(configure(handle, 1, 0), Status::invalid_address);
	EXPECT_EQ(configure(handle, 9, kAddress), Status::invalid_modifier);
	EXPECT_EQ(configure(handle, 2, kPeer), Status::address_not_available);
	ASSERT_TRUE(host_.loop().run_until([&] { return !sent_.empty(); }));
	sent_.clear(); // it has announced itself

	const auto request = [&] {
		Frame frame = tcp::encode({tcp::kBroadcast, kPeerMac, tcp::kTypeArp},
					  tcp::Arp{false, kPeerMac, 0, kPeer, kAddress});
		cable_.send(std::make_shared<const Frame>(std::move(frame)));
	};
	request();
	ASSERT_TRUE(host_.loop().run_until([&] { return !sent_.empty(); }));
	const auto answer = tcp::parse_arp(tcp::View(*sent_[0]).subspan(tcp::kEthernetHeader));
	ASSERT_TRUE(answer);
	std::array<std::byte, 8> address;
	host_.read_register(4, wire::page_base + wire::page::rdma_address, address);
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
	ASSERT_TRUE(host_.loop().run_until([&] { return !sent_.empty(); }));
	const auto pong = tcp::parse_packet(tcp::View(*sent_[0]).subspan(tcp::kEthernetHeader));
	ASSERT_TRUE(pong);
	EXPECT_EQ(pong->destination, kPeer);

	sent_.clear();
	EXPECT_EQ(configure(handle, 2, kAddress), Status::ok);
	request();
	EXPECT_EQ(configure(handle, 2, kAddress), Status::address_not_available);
	EXPECT_TRUE(sent_.empty());
}

// Replies are held while their queue is full, and requests behind them; none is lost, and their
// order stays.
TEST_F(AmmassoRnic, HoldsRepliesWhileTheQueueIsFull)
{
	initialise();
	std::uint16_t seen = 0;
	std::uint64_t asked = 0, answered = 0;
	const auto taken = [&] { return word(kRequestWord) == produced_; };
	const auto post = [&] {
		for (unsigned i = 0; i < wire::request_entries - 2; ++i)
			fill(MessageId::rnic_query, {{0x10, 0}}, ++asked);
		tell();
	};
	const auto read_all = [&] {
		for (; seen != word(kReplyWord);
		     seen = static_cast<std::uint16_t>((seen + 1) % wire::reply_entries))
			EXPECT_EQ(load_be<std::uint64_t>(
					  host_.memory(kReplies + seen * wire::message_size, 16),
					  wire::header::context),
				  ++answered);
		put<std::uint16_t>(reply_shared_ + wire::shared::index, seen);
	};
	for (unsigned round = 0; round < 2; ++round) {
		post();
		ASSERT_TRUE(host_.loop().run_until(taken));
	}
	post();
	ASSERT_TRUE(host_.loop().run_until(
		[&] { return word(kReplyWord) == wire::reply_entries - 1; }));
	host_.loop().poll();
	EXPECT_FALSE(taken());
	EXPECT_EQ(word(kReplyWord), wire::reply_entries - 1);
	read_all();
	ASSERT_TRUE(host_.loop().run_until(
		[&] { return word(kReplyWord) == asked % wire::reply_entries; }));
	read_all();
	EXPECT_EQ(answered, asked);
	EXPECT_EQ(word(kHintCount), asked);
	EXPECT_TRUE(taken());
}

// No context, no reply; nothing before INIT, or after TERM; an index that is none is not followed.
TEST_F(AmmassoRnic, KeepsSilentWhereItMust)
{
	fill(MessageId::rnic_open);
	tell();
	host_.loop().poll();
	EXPECT_EQ(word(kReplyWord), 0x0100);
	produced_ = 1;
	initialise();
	fill(MessageId::rnic_open, {}, 0);
	tell();
	ASSERT_TRUE(host_.loop().run_until([&] { return word(kRequestWord) == produced_; }));
	EXPECT_EQ(word(kReplyWord), 0);
	put<std::uint16_t>(shared_ + wire::shared::index, wire::request_entries);
	host_.loop().poll();
	EXPECT_EQ(word(kRequestWord), produced_);
	fill(MessageId::term, {}, 0);
	tell();
	host_.loop().poll();
	produced_ = 0;
	put_word(kReplyWord, 0x0100);
	fill(MessageId::rnic_open);
	tell();
	host_.loop().poll();
	EXPECT_EQ(word(kReplyWord), 0x0100);
}

// A host that was killed says no TERM: the next one's INIT begins anew, wherever the last was.
TEST_F(AmmassoRnic, BeginsAnewWithTheNextDriver)
{
	initialise();
	open();
	produced_ = 0;
	initialise();
	EXPECT_NE(open(), 0u);
}

// What INIT has named is not there: no byte is written, and nobody is harmed.
TEST_F(AmmassoRnic, AHostThatNamesNothingHearsNothing)
{
	fill(MessageId::init, {{0x10, 0xffffffff}}, 0);
	fill(MessageId::rnic_open);
	tell();
	host_.loop().poll();
	EXPECT_EQ(word(kReplyWord), 0x0100);
	EXPECT_FALSE(host_.intx());
}

} // namespace
} // namespace weft::ammasso
