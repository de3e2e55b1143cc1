// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Tests the Ethernet rings and the register page. They are plain memory, in which the test
 * simulates the card.
 */
#include <kern/kunit.hpp>
#include "../register_page.hpp"
#include "../rings.hpp"

using namespace amso1100;
using Arrival = ReceiveRing::Arrival;

namespace
{

constexpr u64 ring_bytes = wire::rings_end - wire::receive_ring;
constexpr u64 transmit_at = wire::transmit_ring - wire::receive_ring;
constexpr u64 word_at = wire::receive_index - wire::receive_ring;

/* The card's memory, as the card sees it. */
struct Memory {
	kern::OwnedArray<u64> words =
		kern::make_array<u64>(kern::Gfp::kernel, ring_bytes / sizeof(u64)).take();
	u8 *bytes() { return reinterpret_cast<u8 *>(&words[0]); }
	kern::Mmio window(u64 offset, u64 size)
	{
		return kern::Mmio::over_memory(bytes() + offset, size);
	}
	u16 be16(u64 offset)
	{
		return static_cast<u16>(bytes()[offset] << 8 | bytes()[offset + 1]);
	}
	u64 be64(u64 offset)
	{
		u64 value = 0;
		for (unsigned i = 0; i < sizeof(value); i++)
			value = value << 8 | bytes()[offset + i];
		return value;
	}
	void set_be16(u64 offset, u16 value)
	{
		bytes()[offset] = static_cast<u8>(value >> 8);
		bytes()[offset + 1] = static_cast<u8>(value);
	}
};

u64 transmit_entry(u32 slot)
{
	return transmit_at + slot % wire::transmit_entries * wire::transmit::size;
}

} // namespace

/*
 * A descriptor is complete when the card may read it. Slots are reused in order, also at the end of
 * the ring.
 */
static void transmit_descriptors_complete_in_ring_order(kern::kunit::Test &test)
{
	Memory memory;
	TransmitRing ring;
	ring.attach(memory.window(transmit_at, word_at - transmit_at));
	ring.reset();
	u32 slot = 0, first = 0;
	for (unsigned round = 0; round < 3; round++) {
		EXPECT_TRUE(ring.empty());
		for (u32 i = 0; i < wire::most_transmits; i++)
			slot = ring.put(u64{0x123456789abc0000} + i, static_cast<u16>(60 + i));
		EXPECT_TRUE(ring.full());
		EXPECT_EQ(memory.be16(transmit_entry(slot)),
			  static_cast<u16>(wire::TransmitFlags::ready));
		EXPECT_EQ(memory.be16(transmit_entry(slot) + wire::transmit::length),
			  60u + wire::most_transmits - 1);
		EXPECT_EQ(memory.be64(transmit_entry(slot) + wire::transmit::address),
			  u64{0x123456789abc0000} + wire::most_transmits - 1);
		EXPECT_FALSE(ring.finished(slot));
		/* The second frame completes before the first, and is reported after it. */
		memory.set_be16(transmit_entry(first + 1), 0);
		EXPECT_FALSE(ring.finished(slot));
		for (u32 i = 0; i < wire::most_transmits; i++) {
			memory.set_be16(transmit_entry(first + i), 0);
			ASSERT_TRUE(ring.finished(slot));
			ASSERT_EQ(slot, (first + i) % wire::transmit_entries);
		}
		first = (first + wire::most_transmits) % wire::transmit_entries;
	}
}

/* After a reset the card has no frames, and each frame that it had is freed once. */
static void transmit_ring_reset_frees_each_queued_frame_once(kern::kunit::Test &test)
{
	Memory memory;
	TransmitRing ring;
	ring.attach(memory.window(transmit_at, word_at - transmit_at));
	u32 slot;
	for (unsigned i = 0; i < 3; i++)
		ring.put(i, 60);
	ring.reset();
	EXPECT_EQ(memory.be16(transmit_entry(0)), static_cast<u16>(wire::TransmitFlags::unused));
	EXPECT_FALSE(ring.finished(slot));
	for (u32 i = 0; i < 3; i++) {
		ASSERT_TRUE(ring.reclaim(slot));
		EXPECT_EQ(slot, i);
	}
	EXPECT_FALSE(ring.reclaim(slot));
	EXPECT_TRUE(ring.empty());
}

/* The length in the card's descriptor is used, but not beyond the end of the buffer. */
static void
receive_descriptors_with_an_invalid_length_or_status_are_rejected(kern::kunit::Test &test)
{
	constexpr u32 room = 1544;
	Memory memory;
	kern::kunit::FakeDevice device("amso1100");
	ReceiveRing ring;
	ring.attach(memory.window(0, transmit_at), memory.window(word_at, sizeof(u32)), 250);
	ASSERT_OK(ring.allocate(device.native(), room));
	ring.post_all();
	for (u32 i = 0; i < wire::receive_entries; i++) {
		EXPECT_EQ(memory.be16(i * wire::receive::size),
			  static_cast<u16>(wire::ReceiveFlags::ready));
		EXPECT_EQ(memory.be16(i * wire::receive::size + wire::receive::length), room);
		EXPECT_NE(memory.be64(i * wire::receive::size + wire::receive::address), 0u);
	}
	const struct {
		u16 status;
		u16 length;
		Arrival expected;
	} said[] = {
		{1, 60, Arrival::frame},   {1, room, Arrival::frame}, {1, room + 1, Arrival::bad},
		{1, 0xffff, Arrival::bad}, {1, 13, Arrival::bad},     {2, 60, Arrival::bad},
		{0, 60, Arrival::bad},     {1, 14, Arrival::frame},
	};
	u32 index = 250;
	for (const auto &[status, length, expected] : said) {
		const u8 *bytes;
		u32 found;
		ASSERT_EQ(ring.peek(bytes, found), Arrival::none);
		auto &header = *reinterpret_cast<wire::ReceiveHeader *>(
			const_cast<u8 *>(bytes) - sizeof(wire::ReceiveHeader));
		header = {static_cast<u16>(wire::ReceiveFlags::done), status, length, 0};
		memory.set_be16(index * wire::receive::size,
				static_cast<u16>(wire::ReceiveFlags::done));
		EXPECT_EQ(ring.peek(bytes, found), expected);
		ring.advance();
		EXPECT_EQ(memory.be16(index * wire::receive::size),
			  static_cast<u16>(wire::ReceiveFlags::ready));
		EXPECT_EQ(header.flags, 0u);
		index = (index + 1) % wire::receive_entries;
	}
	ring.publish();
	EXPECT_EQ(memory.be16(word_at + 2), 2u);
}

/* The driver waits for a card that does not release its buffers, but not forever. */
static void
driver_stops_waiting_for_a_card_that_does_not_release_its_receive_buffers(kern::kunit::Test &test)
{
	Memory memory;
	ReceiveRing ring;
	ring.attach(memory.window(0, transmit_at), memory.window(word_at, sizeof(u32)), 0);
	EXPECT_ERROR(ring.quiesce(), -EIO);
	EXPECT_EQ(memory.be16(word_at), 0x8000u);
}

/* The required contents of the register page. The test makes each word wrong in turn. */
static void card_register_page_with_invalid_contents_is_rejected(kern::kunit::Test &test)
{
	Memory memory;
	const auto window = memory.window(0, 0x78);
	for (unsigned i = 0; i < 8; i++)
		memory.bytes()[i] = static_cast<u8>(wire::page_magic[i]);
	window.write_be32(wire::page::version, 4);
	window.write_be32(wire::page::ivn, 18);
	for (const size_t address : {wire::page::host_address, wire::page::rdma_address})
		for (unsigned i = 0; i < 6; i++)
			memory.bytes()[address + i] = static_cast<u8>(2 * i);
	window.write_be32(wire::page::next_receive, wire::receive_ring_address + 16 * 255);
	const auto page = read_register_page(window);
	ASSERT_OK(page);
	EXPECT_EQ(page.value().receive_index, 255u);
	EXPECT_EQ(page.value().host_address[5], 10u);

	const struct {
		size_t offset;
		u32 value;
		int expected;
	} wrong[] = {
		{wire::page::magic, 0, -ENODEV},
		{wire::page::version, 5, -EPROTO},
		{wire::page::ivn, 17, -EPROTO},
		{wire::page::host_address, 0x01020304, -EPROTO},
		{wire::page::next_receive, wire::receive_ring_address + 16 * 256, -EPROTO},
		{wire::page::next_receive, wire::receive_ring_address + 8, -EPROTO},
		{wire::page::next_receive, 0, -EPROTO},
	};
	for (const auto &[offset, value, expected] : wrong) {
		const u32 before = window.read_be32(offset);
		window.write_be32(offset, value);
		EXPECT_ERROR(read_register_page(window), expected);
		window.write_be32(offset, before);
	}
	EXPECT_OK(read_register_page(window));
}

KUNIT_SUITE(amso1100_rings, KUNIT_CASE(transmit_descriptors_complete_in_ring_order),
	    KUNIT_CASE(transmit_ring_reset_frees_each_queued_frame_once),
	    KUNIT_CASE(receive_descriptors_with_an_invalid_length_or_status_are_rejected),
	    KUNIT_CASE(driver_stops_waiting_for_a_card_that_does_not_release_its_receive_buffers),
	    KUNIT_CASE(card_register_page_with_invalid_contents_is_rejected));
