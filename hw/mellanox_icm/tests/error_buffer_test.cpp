// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the detection of fatal errors in the card's error buffer.
#include <kern/kunit.hpp>
#include "../error_buffer.hpp"

using mellanox_icm::ErrorBuffer;

namespace
{

constexpr u32 said = 0x03000001;

/* A failed card may set any of the error words. Words with details do not count. */
void card_error_is_found_in_any_error_word_of_the_error_buffer_but_not_in_detail_words(
	kern::kunit::Test &test)
{
	u32 memory[20] = {};
	const kern::Mmio bar = kern::Mmio::over_memory(memory, sizeof(memory));
	const ErrorBuffer all(bar, 4 * sizeof(u32), 16, ~0u), first(bar, 4 * sizeof(u32), 16, 1);
	EXPECT_EQ(all.first_error(), 0u);
	for (u32 i = 0; i < 16; i++) {
		memory[4 + i] = __builtin_bswap32(said);
		EXPECT_EQ(all.first_error(), said);
		EXPECT_EQ(first.first_error(), i == 0 ? said : 0u);
		memory[4 + i] = 0;
	}
	memory[3] = ~0u;
	EXPECT_EQ(all.first_error(), 0u);
}

/* Without a buffer no error is reported; at most one screen of words is logged. */
void at_most_16_words_of_the_error_buffer_are_logged(kern::kunit::Test &test)
{
	u32 memory[32] = {};
	const kern::Mmio bar = kern::Mmio::over_memory(memory, sizeof(memory));
	__builtin_memset(memory, 0xff, sizeof(memory));
	EXPECT_EQ(ErrorBuffer(bar, 0, 0, ~0u).first_error(), 0u);
	EXPECT_EQ(ErrorBuffer(bar, 0, 32, 1).first_error(), mellanox_icm::removed_card);
	u32 reported = 0;
	ErrorBuffer(bar, 0, 32, ~0u).for_each([&](u32 index, u32) { reported = index + 1; });
	EXPECT_EQ(reported, 16u);
}

KUNIT_SUITE(
	mellanox_error_buffer,
	KUNIT_CASE(
		card_error_is_found_in_any_error_word_of_the_error_buffer_but_not_in_detail_words),
	KUNIT_CASE(at_most_16_words_of_the_error_buffer_are_logged));

} // namespace
