// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that accesses to device registers change only their own bytes, and that copies write whole
// words in order.
#include <kern/kunit.hpp>
#include <kern/mmio.hpp>

namespace
{

/* An access changes only its own bytes, in the byte order that the function's name specifies. */
void mmio_write_changes_only_the_addressed_bytes(kern::kunit::Test &test)
{
	alignas(8) u8 memory[32] = {};
	auto window = kern::Mmio::over_memory(memory, sizeof(memory));

	window.write32(4, 0x01020304);
	EXPECT_EQ(memory[3], 0);
	EXPECT_EQ(memory[4], 4);
	EXPECT_EQ(memory[7], 1);
	EXPECT_EQ(memory[8], 0);
	window.write_be32(8, 0x01020304);
	EXPECT_EQ(memory[8], 1);
	EXPECT_EQ(memory[11], 4);
	EXPECT_EQ(window.read_be32(8), 0x01020304u);
	EXPECT_EQ(window.read32(8), 0x04030201u);
	window.write_be64(16, 0x0102030405060708);
	EXPECT_EQ(memory[16], 1);
	EXPECT_EQ(window.read_be64(16), u64{0x0102030405060708});
	EXPECT_EQ(window.read64(16), u64{0x0807060504030201});
	window.write8(31, 0xaa);
	window.write16(28, 0xbbcc);
	EXPECT_EQ(window.read8(31), 0xaa);
	EXPECT_EQ(window.read16(28), 0xbbcc);
	EXPECT_EQ(memory[30], 0);
}

/* A copy writes whole words in order. */
void mmio_copy_writes_whole_words_in_order(kern::kunit::Test &test)
{
	u64 memory[4] = {};
	const u64 from[2] = {0x1111, 0x2222};
	auto window = kern::Mmio::over_memory(memory, sizeof(memory));

	window.copy64(8, from, 2);
	kern::wmb();
	EXPECT_EQ(memory[0], 0u);
	EXPECT_EQ(memory[1], 0x1111u);
	EXPECT_EQ(memory[2], 0x2222u);
	EXPECT_EQ(memory[3], 0u);
	EXPECT_EQ(window.size(), 32u);
	kern::Mmio moved = std::move(window);
	EXPECT_FALSE(static_cast<bool>(window));
	EXPECT_EQ(moved.read64(16), u64{0x2222});
}

} // namespace

KUNIT_SUITE(kern_mmio, KUNIT_CASE(mmio_write_changes_only_the_addressed_bytes),
	    KUNIT_CASE(mmio_copy_writes_whole_words_in_order));
