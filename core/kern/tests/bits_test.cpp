// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests bit fields, rounding, and the masking of indices against speculation.
#include <kern/bits.hpp>
#include <kern/kunit.hpp>
#include <kern/nospec.hpp>

namespace
{

using Low = kern::Field<u32, 3, 0>;
using High = kern::Field<u32, 31, 28>;
using Wide = kern::Field<u64, 63, 0>;

/* A field is read from and put into its own bits and no others. */
void writing_a_bit_field_changes_only_its_bits(kern::kunit::Test &test)
{
	EXPECT_EQ(Low::get(0xabcdef12), 2u);
	EXPECT_EQ(High::get(0xabcdef12), 0xau);
	EXPECT_EQ(Low::put(0xabcdef12, 7), 0xabcdef17u);
	EXPECT_EQ(High::put(0xabcdef12, 0), 0x0bcdef12u);
	EXPECT_EQ(High::of(0xf), 0xf0000000u);
	EXPECT_FALSE(Low::fits(16));
	EXPECT_EQ(Wide::get(~u64{0}), ~u64{0});
}

/*
 * index_nospec() returns an index below the size unchanged, and 0 for any other, without a branch
 * that could be mispredicted.
 */
void index_nospec_maps_out_of_range_indices_to_zero(kern::kunit::Test &test)
{
	for (size_t size : {size_t{1}, size_t{2}, size_t{1000}, size_t{1} << 40, ~size_t{0}}) {
		EXPECT_EQ(kern::index_nospec(0, size), 0u);
		EXPECT_EQ(kern::index_nospec(size / 2, size), size / 2);
		EXPECT_EQ(kern::index_nospec(size - 1, size), size - 1);
		EXPECT_EQ(kern::index_nospec(size, size), 0u);
		EXPECT_EQ(kern::index_nospec(~size_t{0}, size), 0u);
	}
}

/* The rounding functions agree with their definitions at the edges. */
void bit_mask_alignment_and_log2_functions_are_correct_at_boundary_values(kern::kunit::Test &test)
{
	EXPECT_EQ(kern::bit_mask<u32>(7, 4), 0xf0u);
	EXPECT_EQ(kern::bit_mask<u32>(31, 0), ~0u);
	EXPECT_EQ(kern::bit<u64>(40), u64{1} << 40);
	EXPECT_EQ(kern::align_up(4097u, 4096), 8192u);
	EXPECT_EQ(kern::align_up(4096u, 4096), 4096u);
	EXPECT_EQ(kern::align_down(4097u, 4096), 4096u);
	EXPECT_EQ(kern::div_round_up(9u, 4), 3u);
	EXPECT_EQ(kern::log2_ceil(1), 0u);
	EXPECT_EQ(kern::log2_ceil(2), 1u);
	EXPECT_EQ(kern::log2_ceil(3), 2u);
	EXPECT_EQ(kern::log2_ceil(u64{1} << 33), 33u);
	EXPECT_EQ(kern::round_up_power_of_two(5), u64{8});
	EXPECT_TRUE(kern::is_power_of_two(64u));
	EXPECT_FALSE(kern::is_power_of_two(0u));
}

} // namespace

KUNIT_SUITE(kern_bits, KUNIT_CASE(writing_a_bit_field_changes_only_its_bits),
	    KUNIT_CASE(bit_mask_alignment_and_log2_functions_are_correct_at_boundary_values),
	    KUNIT_CASE(index_nospec_maps_out_of_range_indices_to_zero));
