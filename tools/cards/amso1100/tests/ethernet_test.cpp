// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the card's Ethernet interface with a minimal driver. An in-memory channel replaces the
// cable.
#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hw/amso1100/registers.hpp>

#include "cards/amso1100/bytes.hpp"
#include "cards/model.hpp"
#include "net/ethernet/channel.hpp"
#include "bus/pci/testing/fake_host.hpp"

namespace weft::amso1100
{
namespace
{

namespace wire = hw::amso1100;
using ethernet::Frame;
using ethernet::FramePtr;

constexpr std::uint64_t kOut = 0x10000; // frames to send
constexpr std::uint64_t kIn = 0x100000; // receive buffers of kRoom bytes each
constexpr std::size_t kRoom = 2048;

class Amso1100Ethernet : public ::testing::Test
{
protected:
	Amso1100Ethernet()
	{
		const cards::Model *model = cards::find_model("amso1100");
		if (!model)
			throw std::logic_error("nobody has registered the model");
		card_ = model->make({.name = "node1",
				     .guid = 77,
				     .ports = {},
				     .ethernet = channel_,
				     .flags = {}},
				    &host_.loop());
		host_.plug(*card_->function());
		host_.set_msix_enabled(false); // use INTx
		host_.write<std::uint32_t>(0, wire::reg::nimr0,
					   ~(wire::nisr_receive | wire::nisr_transmit));
		host_.write<std::uint32_t>(0, wire::reg::idis, 0);
	}
	~Amso1100Ethernet() override { host_.unplug(); }

	template<typename T>
	void put(std::uint64_t offset, T value)
	{
		std::array<std::byte, sizeof(T)> bytes;
		store_be<T>(bytes, 0, value);
		host_.write_register(4, offset, bytes);
	}
	template<typename T>
	T get(std::uint64_t offset)
	{
		std::array<std::byte, sizeof(T)> bytes;
		host_.read_register(4, offset, bytes);
		return load_be<T>(bytes);
	}
	std::uint32_t status() { return host_.read<std::uint32_t>(0, wire::reg::nisr0); }
	void acknowledge(std::uint32_t bits)
	{
		host_.write<std::uint32_t>(0, wire::reg::nisr0, bits);
	}

	static std::uint64_t transmit_entry(unsigned index)
	{
		return wire::transmit_ring + index % wire::transmit_entries * wire::transmit::size;
	}
	static std::uint64_t receive_entry(unsigned index)
	{
		return wire::receive_ring + index % wire::receive_entries * wire::receive::size;
	}
	static std::uint64_t buffer(unsigned index)
	{
		return kIn + index % wire::receive_entries * kRoom;
	}

	// Writes a descriptor as the old driver does: the address is not aligned to eight bytes,
	// and is written in two halves.
	void transmit(unsigned index, std::uint64_t address, std::uint16_t length)
	{
		put<std::uint32_t>(transmit_entry(index) + wire::transmit::address,
				   static_cast<std::uint32_t>(address >> 32));
		put<std::uint32_t>(transmit_entry(index) + wire::transmit::address + 4,
				   static_cast<std::uint32_t>(address));
		put<std::uint16_t>(transmit_entry(index) + wire::transmit::length, length);
		put<std::uint16_t>(transmit_entry(index),
				   static_cast<std::uint16_t>(wire::TransmitFlags::ready));
	}
	wire::TransmitFlags transmit_flags(unsigned index)
	{
		return static_cast<wire::TransmitFlags>(get<std::uint16_t>(transmit_entry(index)));
	}
	void give(unsigned index, std::uint16_t room = kRoom - sizeof(wire::ReceiveHeader))
	{
		host_.object<wire::ReceiveHeader>(buffer(index)) = {};
		put<std::uint16_t>(receive_entry(index) + wire::receive::length, room);
		put<std::uint64_t>(receive_entry(index) + wire::receive::address, buffer(index));
		put<std::uint16_t>(receive_entry(index),
				   static_cast<std::uint16_t>(wire::ReceiveFlags::ready));
	}
	const wire::ReceiveHeader &header(unsigned index)
	{
		return host_.object<wire::ReceiveHeader>(buffer(index));
	}
	bool arrived(unsigned index) { return header(index).flags == 2; }

	ethernet::Address own()
	{
		return get<std::uint64_t>(wire::page_base + wire::page::host_address) >> 16;
	}
	static Frame frame_to(ethernet::Address destination, std::size_t size, std::uint8_t filler)
	{
		Frame frame(size, filler);
		for (int i = 0; i < 6; ++i)
			frame[static_cast<std::size_t>(i)] =
				static_cast<std::uint8_t>(destination >> (40 - 8 * i));
		return frame;
	}
	void from_cable(Frame frame)
	{
		cable_->send(std::make_shared<const Frame>(std::move(frame)));
	}
	std::uint64_t counted(std::string_view name)
	{
		for (const cards::Count &count : card_->activity())
			if (count.name == name)
				return count.value;
		throw std::out_of_range(std::string(name));
	}

	testing::FakeHost host_;
	std::vector<FramePtr> sent_;
	const std::shared_ptr<ethernet::Channel> channel_ = std::make_shared<ethernet::Channel>();
	std::optional<ethernet::Channel::End> cable_{
		std::in_place, channel_, ethernet::Channel::kNetwork, host_.loop(),
		[this](const FramePtr &frame) { sent_.push_back(frame); }};
	std::unique_ptr<cards::Card> card_;
};

// A driver finds the identification that it checks before it binds to the card.
TEST_F(Amso1100Ethernet, RegisterPageHasTheMagicNumberVersionAndMacThatDriversCheck)
{
	const std::string magic = "CEPHEUS";
	for (std::size_t i = 0; i < magic.size(); ++i)
		EXPECT_EQ(get<std::uint8_t>(wire::page_base + i), magic[i]);
	EXPECT_EQ(get<std::uint32_t>(wire::page_base + wire::page::version), 4u);
	EXPECT_EQ(get<std::uint32_t>(wire::page_base + wire::page::ivn), 18u);
	EXPECT_EQ(own() >> 24, 0x000db2u);
	EXPECT_EQ(get<std::uint64_t>(wire::page_base + wire::page::rdma_address) >> 16, own() + 1);
	EXPECT_EQ(get<std::uint32_t>(wire::page_base + wire::page::next_receive),
		  wire::receive_ring_address);
	EXPECT_EQ(host_.read<std::uint32_t>(0, wire::reg::host_hint), wire::hint_none);
	EXPECT_EQ(host_.read<std::uint32_t>(2, 0), 0u);
	put<std::uint32_t>(wire::page_base + wire::page::version, 7);
	EXPECT_EQ(get<std::uint32_t>(wire::page_base + wire::page::version), 4u);
}

TEST_F(Amso1100Ethernet, FramesAreSentInOrderAndPadded)
{
	std::ranges::fill(host_.memory(kOut, 14), std::byte{0x11});
	std::ranges::fill(host_.memory(kOut + 0x1000, 1514), std::byte{0x22});
	transmit(0, kOut, 14);
	transmit(1, kOut + 0x1000, 1514);
	ASSERT_TRUE(host_.loop().run_until([&] { return sent_.size() == 2; }));
	EXPECT_EQ(sent_[0]->size(), 60u);
	EXPECT_EQ(sent_[0]->at(13), 0x11);
	EXPECT_EQ(sent_[0]->at(14), 0);
	EXPECT_EQ(sent_[1]->size(), 1514u);
	EXPECT_EQ(sent_[1]->back(), 0x22);
	EXPECT_EQ(transmit_flags(0), wire::TransmitFlags::done);
	EXPECT_EQ(transmit_flags(1), wire::TransmitFlags::done);
	EXPECT_EQ(transmit_flags(2), wire::TransmitFlags::unused);
	EXPECT_TRUE(host_.intx());
	EXPECT_EQ(status(), wire::nisr_transmit);
	acknowledge(wire::nisr_transmit);
	EXPECT_FALSE(host_.intx());
}

// A driver that enables MSI gets messages instead of INTx: one until it has acknowledged all
// events, and another if there are new ones. The RNIC has a separate message.
TEST_F(Amso1100Ethernet, MsiReplacesIntxIfEnabled)
{
	host_.set_msix_enabled(true);
	const auto send = [&](unsigned slot) {
		transmit(slot, kOut, 14);
		return host_.loop().run_until([&] { return sent_.size() == slot + 1; });
	};
	const auto network = static_cast<unsigned>(wire::Vector::network);
	ASSERT_TRUE(send(0));
	EXPECT_EQ(host_.take_interrupts(network), 1u);
	EXPECT_FALSE(host_.intx());
	ASSERT_TRUE(send(1));
	EXPECT_EQ(host_.take_interrupts(network), 0u);
	EXPECT_EQ(status(), wire::nisr_transmit);
	ASSERT_TRUE(send(2));
	acknowledge(wire::nisr_transmit);
	EXPECT_EQ(host_.take_interrupts(network), 1u);
	EXPECT_EQ(status(), wire::nisr_transmit);
	acknowledge(wire::nisr_transmit);
	EXPECT_EQ(host_.take_interrupts(network), 0u);
	// A masked event is signalled once it is unmasked.
	host_.write<std::uint32_t>(0, wire::reg::nimr0, ~0u);
	ASSERT_TRUE(send(3));
	EXPECT_EQ(host_.take_interrupts(network), 0u);
	host_.write<std::uint32_t>(0, wire::reg::nimr0, ~wire::nisr_transmit);
	EXPECT_EQ(host_.take_interrupts(network), 1u);
	EXPECT_EQ(host_.take_interrupts(static_cast<unsigned>(wire::Vector::rnic)), 0u);
}

// A full ring is sent in slices and wraps around. A driver that is loaded again starts at the
// beginning of the ring.
TEST_F(Amso1100Ethernet, TransmitRingWrapsAround)
{
	unsigned next = 0;
	for (std::size_t round = 1; round <= 3; ++round) {
		for (unsigned i = 0; i < wire::most_transmits; ++i)
			transmit(next++, kOut, 60);
		ASSERT_TRUE(host_.loop().run_until(
			[&] { return sent_.size() == round * wire::most_transmits; }));
	}
	transmit(0, kOut, 60);
	ASSERT_TRUE(host_.loop().run_until(
		[&] { return sent_.size() == 3 * wire::most_transmits + 1; }));
	EXPECT_EQ(counted("transmitted"), 3u * wire::most_transmits + 1);
}

// If the thread of the Ethernet segment is busy, the card waits and no frame is lost. If the
// segment is removed meanwhile, the card stops waiting.
TEST_F(Amso1100Ethernet, CardStopsTransmittingWhileTheQueueOfTheEmulatedEthernetSegmentIsFull)
{
	Loop slow("slow", Loop::Mode::manual);
	cable_.reset();
	cable_.emplace(channel_, ethernet::Channel::kNetwork, slow,
		       [this](const FramePtr &frame) { sent_.push_back(frame); });
	constexpr unsigned frames = 200;
	for (unsigned i = 0; i < frames; ++i)
		transmit(i, kOut, 9014);
	const auto rest = [this] {
		while (host_.loop().poll())
			;
	};
	rest();
	const auto held = counted("transmitted");
	EXPECT_EQ(held, (ethernet::Channel::kMostQueued - ethernet::kMostFrame -
			 ethernet::Channel::kOverhead) /
					(9014 + ethernet::Channel::kOverhead) +
				1);
	EXPECT_EQ(transmit_flags(static_cast<unsigned>(held)), wire::TransmitFlags::ready);
	while (sent_.size() < 150) {
		ASSERT_TRUE(slow.run_until(
			[&, before = sent_.size()] { return sent_.size() > before; }));
		rest();
	}
	EXPECT_LT(counted("transmitted"), frames + 1u);
	cable_.reset();
	rest();
	EXPECT_EQ(counted("transmitted"), frames);
}

// Invalid or unreachable frames are completed too, so that the ring does not stall.
TEST_F(Amso1100Ethernet, InvalidTransmitDescriptorsAreCompletedWithoutSendingAFrame)
{
	transmit(0, kOut, 13);
	transmit(1, kOut, 9023);
	transmit(2, std::uint64_t{1} << 60, 60);
	transmit(3, kOut, 60);
	ASSERT_TRUE(host_.loop().run_until([&] { return sent_.size() == 1; }));
	EXPECT_EQ(transmit_flags(2), wire::TransmitFlags::done);
	EXPECT_EQ(counted("bad-transmits"), 3u);
}

TEST_F(Amso1100Ethernet, CardDoesNoDmaWithoutBusMastering)
{
	host_.set_bus_master(false);
	transmit(0, kOut, 60);
	give(0);
	from_cable(frame_to(own(), 60, 1));
	ASSERT_TRUE(host_.loop().run_until([&] { return counted("missed") == 1; }));
	EXPECT_EQ(transmit_flags(0), wire::TransmitFlags::ready);
	host_.set_bus_master(true);
	ASSERT_TRUE(host_.loop().run_until([&] { return sent_.size() == 1; }));
}

TEST_F(Amso1100Ethernet, UnicastFramesNotAddressedToTheEthernetInterfaceAreDropped)
{
	for (unsigned i = 0; i < 4; ++i)
		give(i);
	from_cable(frame_to(own(), 60, 1));
	from_cable(frame_to(own() + 1, 60, 2)); // the RNIC's address
	from_cable(frame_to(0x020000000001, 60, 3));
	from_cable(frame_to(0xffffffffffff, 100, 4));
	from_cable(frame_to(0x01005e000001, 1514, 5));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(2); }));
	const std::pair<std::size_t, int> expected[] = {{60, 1}, {100, 4}, {1514, 5}};
	for (unsigned i = 0; i < 3; ++i) {
		EXPECT_EQ(header(i).status, static_cast<std::uint16_t>(wire::ReceiveStatus::good));
		EXPECT_EQ(header(i).length, expected[i].first);
		const auto bytes =
			host_.memory(buffer(i) + sizeof(wire::ReceiveHeader), expected[i].first);
		EXPECT_EQ(static_cast<int>(bytes.back()), expected[i].second);
	}
	EXPECT_FALSE(arrived(3));
	EXPECT_EQ(status(), wire::nisr_receive);
	EXPECT_TRUE(host_.intx());
	EXPECT_EQ(get<std::uint32_t>(wire::page_base + wire::page::next_receive),
		  wire::receive_ring_address + 48);
}

// A frame is dropped if there is no buffer, or if the buffer is too small or invalid. The next one
// arrives.
TEST_F(Amso1100Ethernet, FramesAreDroppedIfTheNextReceiveBufferIsMissingInvalidOrTooSmall)
{
	from_cable(frame_to(own(), 60, 1));
	ASSERT_TRUE(host_.loop().run_until([&] { return counted("missed") == 1; }));
	give(0, 100);
	from_cable(frame_to(own(), 101, 2));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(0); }));
	EXPECT_EQ(header(0).status, static_cast<std::uint16_t>(wire::ReceiveStatus::overflow));
	EXPECT_EQ(header(0).length, 100);
	EXPECT_EQ(host_.object<std::uint8_t>(buffer(0) + sizeof(wire::ReceiveHeader)), 0);
	give(1);
	put<std::uint64_t>(receive_entry(1) + wire::receive::address, std::uint64_t{1} << 60);
	give(2);
	from_cable(frame_to(own(), 60, 3));
	from_cable(frame_to(own(), 60, 4));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(2); }));
	EXPECT_EQ(counted("missed"), 2u);
	EXPECT_EQ(counted("overlong"), 1u);
	EXPECT_EQ(counted("received"), 1u);
}

// Bit 31 drops all buffers, and the register returns the card's own index.
TEST_F(Amso1100Ethernet, QuiesceBitDropsAllPostedReceiveBuffers)
{
	for (unsigned i = 0; i < wire::receive_entries; ++i)
		give(i);
	from_cable(frame_to(own(), 60, 1));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(0); }));
	put<std::uint32_t>(wire::receive_index, 9 | wire::receive_quiesce);
	EXPECT_EQ(get<std::uint32_t>(wire::receive_index), 1u);
	EXPECT_FALSE(host_.intx());
	from_cable(frame_to(own(), 60, 2));
	ASSERT_TRUE(host_.loop().run_until([&] { return counted("missed") == 1; }));
	EXPECT_FALSE(arrived(1));
	give(1);
	from_cable(frame_to(own(), 60, 3));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(1); }));
}

// The old driver acknowledges after it has read the status. Events in between are not lost.
TEST_F(Amso1100Ethernet, InterruptCausesRaisedAfterTheStatusReadStayPending)
{
	give(0);
	give(1);
	from_cable(frame_to(own(), 60, 1));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(0); }));
	const auto seen = status();
	from_cable(frame_to(own(), 60, 2));
	ASSERT_TRUE(host_.loop().run_until([&] { return arrived(1); }));
	acknowledge(seen);
	EXPECT_TRUE(host_.intx());
	acknowledge(status());
	EXPECT_FALSE(host_.intx());
}

TEST_F(Amso1100Ethernet, MaskedInterruptsDeassertIntx)
{
	give(0);
	from_cable(frame_to(own(), 60, 1));
	ASSERT_TRUE(host_.loop().run_until([&] { return host_.intx(); }));
	host_.write<std::uint32_t>(0, wire::reg::nimr0, ~0u);
	EXPECT_FALSE(host_.intx());
	host_.write<std::uint32_t>(0, wire::reg::nimr0, 0);
	EXPECT_TRUE(host_.intx());
	host_.write<std::uint32_t>(0, wire::reg::idis, 1);
	EXPECT_FALSE(host_.intx());
}

TEST_F(Amso1100Ethernet, ResetRestoresPowerOnState)
{
	give(0);
	transmit(0, kOut, 60);
	card_->function()->reset(PciReset::function_level);
	from_cable(frame_to(own(), 60, 1));
	ASSERT_TRUE(host_.loop().run_until([&] { return counted("missed") == 1; }));
	EXPECT_TRUE(sent_.empty());
	EXPECT_EQ(transmit_flags(0), wire::TransmitFlags::unused);
	EXPECT_EQ(host_.read<std::uint32_t>(0, wire::reg::idis), 1u);
	EXPECT_EQ(host_.read<std::uint32_t>(0, wire::reg::nimr0), ~0u);
}

} // namespace
} // namespace weft::amso1100
