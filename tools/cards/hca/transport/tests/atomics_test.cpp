// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the atomic operations, their masked forms and their byte order.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cards/hca/transport/atomics.hpp"

namespace weft::hca::transport
{

/* Only the bits in the compare mask are compared, and only those in the swap mask change. */
TEST(Atomics, MaskedCompareSwapAppliesMasks)
{
	EXPECT_EQ(masked_compare_swap(0x1122, 0x0022, 0x00ff, 0xaabb, 0xff00), 0xaa22u);
	EXPECT_EQ(masked_compare_swap(0x1122, 0x0023, 0x00ff, 0xaabb, 0xff00), 0x1122u);
	EXPECT_EQ(masked_compare_swap(5, 9, 0, 7, ~0ULL), 7u) << "nothing compared always matches";
}

/*
 * No carry crosses the boundary of a field. Without boundaries the operation is a plain addition.
 */
TEST(Atomics, MaskedFetchAddDoesNotCarryAcrossFields)
{
	std::mt19937_64 random(11);
	for (int i = 0; i < 1000; i++) {
		std::uint64_t word = random(), add = random();
		EXPECT_EQ(masked_fetch_add(word, add, 0), word + add);
		/* The fields have one byte each. */
		std::uint64_t expected = 0;
		for (unsigned shift = 0; shift < 64; shift += 8)
			expected |= (((word >> shift) + (add >> shift)) & 0xff) << shift;
		EXPECT_EQ(masked_fetch_add(word, add, 0x8080808080808080), expected);
	}
	EXPECT_EQ(masked_fetch_add(0xff, 1, 0x80), 0u);
}

/* Operands are numbers: guests of either byte order see the correct result. */
TEST(Atomics, BigEndianFlagSelectsTheByteOrderOfOperandsInMemory)
{
	for (bool big : {false, true}) {
		GuestMemory memory;
		auto ram = MemoryMapping::allocate(4096);
		memory.map(0, 4096, true, true, ram);
		std::uint64_t start = 41;
		if (big)
			start = ib::be64(start).raw();
		std::memcpy(ram->data() + 64, &start, 8);

		packet::Headers headers;
		headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::fetch_add);
		headers.atomic.swap_or_add = 1;
		EXPECT_EQ(execute_atomic(memory, 64, headers, big), 41u);
		headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::compare_swap);
		headers.atomic.compare = 42;
		headers.atomic.swap_or_add = 1000;
		EXPECT_EQ(execute_atomic(memory, 64, headers, big), 42u);
		std::uint64_t end;
		std::memcpy(&end, ram->data() + 64, 8);
		EXPECT_EQ(big ? ib::be64::from_raw(end).value() : end, 1000u);
	}
}

/* An atomic on unmapped memory fails. */
TEST(Atomics, AtomicsOnUnmappedMemoryAreRejected)
{
	GuestMemory memory;
	packet::Headers headers;
	headers.bth.opcode = ib::opcode(ib::Transport::rc, ib::Operation::fetch_add);
	EXPECT_FALSE(execute_atomic(memory, 64, headers, false));
}

} // namespace weft::hca::transport
