// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the map of context memory by comparing it with a trivial implementation.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "cards/mellanox_icm/icm_map.hpp"

namespace weft::mellanox_icm
{
namespace
{

// @start is the address of the first page that is used.
void agrees_with_a_map_of_single_pages(std::uint64_t start)
{
	std::mt19937_64 random(1);
	IcmMap icm;
	std::map<std::uint64_t, std::uint64_t> pages;
	for (unsigned step = 0; step < 5000; ++step) {
		const std::uint64_t page = random() % 64;
		const std::uint64_t count = 1 + random() % 16;
		if (random() % 3) {
			const std::uint64_t bus = random() % 64;
			ASSERT_TRUE(icm.map(start + page * 4096, bus * 4096, count * 4096));
			for (std::uint64_t i = 0; i < count; ++i)
				pages[page + i] = bus + i;
		} else {
			icm.unmap(start + page * 4096, count * 4096);
			for (std::uint64_t i = 0; i < count; ++i)
				pages.erase(page + i);
		}
		for (std::uint64_t i = 0; i < 80; ++i) {
			const auto place = icm.find(start + i * 4096 + 17);
			const auto expected = pages.find(i);
			ASSERT_EQ(place.has_value(), expected != pages.end()) << i;
			if (place) {
				ASSERT_EQ(place->bus, expected->second * 4096 + 17);
			}
		}
		std::uint64_t seen = 0;
		icm.for_each(start + 8 * 4096, 16 * 4096,
			     [&](std::uint64_t from, std::uint64_t bus, std::uint64_t size) {
				     for (std::uint64_t at = 0; at < size; at += 4096, ++seen)
					     ASSERT_EQ(pages.at((from - start + at) / 4096) * 4096,
						       bus + at);
			     });
		std::uint64_t expected = 0;
		for (std::uint64_t i = 8; i < 24; ++i)
			expected += pages.count(i);
		ASSERT_EQ(seen, expected);
		ASSERT_EQ(icm.covers(start + 8 * 4096, 16 * 4096), expected == 16);
	}
}

TEST(IcmMap, RandomMappingsMatchAReferenceMap)
{
	agrees_with_a_map_of_single_pages(0);
}

// The addresses are at the end of the directly indexed range and beyond it.
TEST(IcmMap, RandomMappingsAtHighAddressesMatchAReferenceMap)
{
	agrees_with_a_map_of_single_pages((std::uint64_t{1} << 33) - 40 * 4096);
	agrees_with_a_map_of_single_pages(std::uint64_t{1} << 40);
}

TEST(IcmMap, RangesMayEndAtTheLastAddressButNotWrapAround)
{
	IcmMap icm;
	const std::uint64_t top = ~std::uint64_t{4095};
	EXPECT_TRUE(icm.map(top, 0x1000, 4096));
	EXPECT_EQ(icm.find(~std::uint64_t{0})->bus, 0x1fffu);
	EXPECT_FALSE(icm.map(top, 0x1000, 8192)) << "wraps around";
	EXPECT_FALSE(icm.map(0, top, 8192)) << "wraps around on the bus";
	icm.unmap(0, top);
	EXPECT_TRUE(icm.find(top)) << "only what is below";
	icm.unmap(top, 8192);
	EXPECT_FALSE(icm.find(top)) << "as far as there are addresses";
}

TEST(IcmMap, NumberOfMappingsIsLimited)
{
	IcmMap icm;
	for (std::uint64_t i = 0; i < IcmMap::kMaxPieces; ++i)
		ASSERT_TRUE(icm.map(i * 8192, 0, 4096));
	EXPECT_FALSE(icm.map(IcmMap::kMaxPieces * 8192, 0, 4096));
	EXPECT_EQ(icm.pieces(), IcmMap::kMaxPieces);
}

// Removing or replacing a page in the middle of a piece splits the piece. A change that would
// exceed the limit is refused and has no effect.
TEST(IcmMap, MapAndUnmapAreRefusedIfASplitWouldExceedTheMaximumNumberOfMappings)
{
	IcmMap icm;
	ASSERT_TRUE(icm.map(0, 0, 8 * 4096));
	for (std::uint64_t i = 1; i + 1 < IcmMap::kMaxPieces; ++i)
		ASSERT_TRUE(icm.map(0x100000 + i * 8192, 0, 4096));
	ASSERT_EQ(icm.pieces(), IcmMap::kMaxPieces - 1);
	EXPECT_FALSE(icm.map(4096, 0, 4096)) << "two more";
	EXPECT_EQ(icm.find(4096)->bus, 4096u);
	EXPECT_TRUE(icm.unmap(4096, 4096)) << "one more";
	EXPECT_EQ(icm.pieces(), IcmMap::kMaxPieces);
	EXPECT_FALSE(icm.unmap(4 * 4096, 4096));
	EXPECT_TRUE(icm.find(4 * 4096));
	EXPECT_FALSE(icm.map(4096, 0x100000, 4096));
	EXPECT_EQ(icm.pieces(), IcmMap::kMaxPieces);
	// Changes that do not increase the number of pieces still succeed.
	EXPECT_TRUE(icm.unmap(7 * 4096, 4096));
	EXPECT_TRUE(icm.unmap(0, 8 * 4096));
	EXPECT_EQ(icm.pieces(), IcmMap::kMaxPieces - 2);
}

} // namespace
} // namespace weft::mellanox_icm
