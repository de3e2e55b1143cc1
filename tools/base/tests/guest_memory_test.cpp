// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests accesses to guest memory, its mapping and its permissions.
#include "base/guest_memory.hpp"

#include <thread>

#include <gtest/gtest.h>

using weft::Access;
using weft::GuestMemory;
using weft::MemoryMapping;
using MapResult = weft::GuestMemory::MapResult;

namespace
{

constexpr std::uint64_t kPage = 4096;

std::vector<std::byte> pattern(std::size_t size)
{
	std::vector<std::byte> bytes(size);
	for (std::size_t i = 0; i < size; ++i)
		bytes[i] = static_cast<std::byte>(i * 7 + 1);
	return bytes;
}

// Reads return what was written, inside one mapping and across adjacent ones.
TEST(GuestMemory, DataWrittenAcrossTwoMappingsReadsBack)
{
	GuestMemory memory;
	ASSERT_EQ(memory.map(kPage, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	ASSERT_EQ(memory.map(2 * kPage, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	const auto data = pattern(kPage);
	for (std::uint64_t at : {kPage, kPage + 100, 2 * kPage}) {
		ASSERT_TRUE(memory.write(at, data));
		std::vector<std::byte> seen(data.size());
		ASSERT_TRUE(memory.read(at, seen));
		EXPECT_EQ(seen, data);
	}
}

// No byte outside the mappings can be accessed: neither before, after or around them, nor past the
// end of the address space. A write that ends outside a mapping has no effect on its valid part
// either.
TEST(GuestMemory, AccessToUnmappedAddressesFails)
{
	GuestMemory memory;
	const auto mapping = MemoryMapping::allocate(kPage);
	ASSERT_EQ(memory.map(kPage, kPage, true, true, mapping), MapResult::mapped);
	std::byte one[1];
	EXPECT_FALSE(memory.read(kPage - 1, one));
	EXPECT_TRUE(memory.read(kPage, one));
	EXPECT_TRUE(memory.read(2 * kPage - 1, one));
	EXPECT_FALSE(memory.read(2 * kPage, one));
	EXPECT_FALSE(memory.read(~0ull, one));

	const auto data = pattern(16);
	EXPECT_FALSE(memory.write(2 * kPage - 8, data));
	EXPECT_EQ(mapping->data()[kPage - 8], std::byte{0});
	EXPECT_FALSE(memory.write(kPage - 8, data));
	EXPECT_FALSE(memory.write(~0ull - 7, data));
	EXPECT_FALSE(memory.covers(kPage, ~0ull, Access::read));
}

// An access of length zero succeeds, whether its address is mapped or not.
TEST(GuestMemory, ZeroLengthAccessSucceeds)
{
	GuestMemory memory;
	EXPECT_TRUE(memory.read(kPage, {}));
	ASSERT_EQ(memory.map(0, kPage, true, false, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	EXPECT_TRUE(memory.read(0, {}));
	EXPECT_TRUE(memory.write(0, {}));
}

// A range never wraps from the last address to address 0.
TEST(GuestMemory, RangesThatWrapAroundAreRefused)
{
	GuestMemory memory;
	ASSERT_EQ(memory.map(0, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	ASSERT_EQ(memory.map(0 - kPage, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	std::byte sixteen[16];
	EXPECT_TRUE(memory.read(0 - std::uint64_t{16}, sixteen));
	EXPECT_FALSE(memory.read(0 - std::uint64_t{8}, sixteen));
}

// Overlapping and invalid mappings are refused, and have no effect on existing ones.
TEST(GuestMemory, OverlappingAndInvalidMappingsAreRefused)
{
	GuestMemory memory;
	const auto mapping = MemoryMapping::allocate(4 * kPage);
	ASSERT_EQ(memory.map(4 * kPage, 4 * kPage, true, true, mapping), MapResult::mapped);
	EXPECT_EQ(memory.map(4 * kPage, 4 * kPage, true, true, mapping), MapResult::overlap);
	EXPECT_EQ(memory.map(7 * kPage, kPage, true, true, mapping), MapResult::overlap);
	EXPECT_EQ(memory.map(3 * kPage, 2 * kPage, true, true, mapping), MapResult::overlap);
	EXPECT_EQ(memory.map(0, ~0ull, true, true, nullptr), MapResult::overlap);
	EXPECT_EQ(memory.map(0, 0, true, true, mapping), MapResult::invalid);
	EXPECT_EQ(memory.map(~0ull, 2, true, true, mapping), MapResult::invalid);
	EXPECT_EQ(memory.map(kPage * 100, 5 * kPage, true, true, mapping), MapResult::invalid);
	EXPECT_EQ(memory.mappings(), 1u);
}

// unmap() removes one or several whole mappings, and refuses a part of one. Removed mappings cannot
// be accessed.
TEST(GuestMemory, UnmappingPartOfAMappingIsRefused)
{
	GuestMemory memory;
	for (std::uint64_t at : {std::uint64_t{0}, kPage, 4 * kPage})
		ASSERT_EQ(memory.map(at, kPage, true, true, MemoryMapping::allocate(kPage)),
			  MapResult::mapped);
	EXPECT_TRUE(memory.read_as<int>(kPage));
	EXPECT_FALSE(memory.unmap(2 * kPage, 2 * kPage));
	EXPECT_FALSE(memory.unmap(8, kPage));
	EXPECT_FALSE(memory.unmap(0, kPage + 8));
	EXPECT_FALSE(memory.unmap(0, 0));
	EXPECT_FALSE(memory.unmap(kPage, ~0ull));
	EXPECT_EQ(memory.mappings(), 3u);
	EXPECT_TRUE(memory.unmap(kPage, kPage));
	EXPECT_FALSE(memory.read_as<int>(kPage));
	EXPECT_TRUE(memory.read_as<int>(0));
	EXPECT_TRUE(memory.unmap(0, 100 * kPage));
	EXPECT_EQ(memory.mappings(), 0u);
}

// Read-only, write-only and inaccessible mappings permit only those accesses.
TEST(GuestMemory, MappingPermissionsAreEnforced)
{
	GuestMemory memory;
	ASSERT_EQ(memory.map(0, kPage, true, false, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	ASSERT_EQ(memory.map(kPage, kPage, false, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	ASSERT_EQ(memory.map(2 * kPage, kPage, true, true, nullptr), MapResult::mapped);
	EXPECT_TRUE(memory.read_as<int>(0));
	EXPECT_FALSE(memory.write_as<int>(0, 1));
	EXPECT_FALSE(memory.store<std::uint32_t>(0, 1));
	EXPECT_FALSE(memory.fetch_add(0, 1));
	EXPECT_FALSE(memory.read_as<int>(kPage));
	EXPECT_TRUE(memory.write_as<int>(kPage, 1));
	EXPECT_FALSE(memory.fetch_add(kPage, 1));
	EXPECT_FALSE(memory.read_as<int>(2 * kPage));
	EXPECT_FALSE(memory.write_as<int>(2 * kPage, 1));
	const auto across = pattern(16);
	EXPECT_FALSE(memory.write(2 * kPage - 8, across));
}

// A segment stays valid memory after its mapping was unmapped.
TEST(GuestMemory, TranslatedSegmentsStayValidAfterUnmap)
{
	GuestMemory memory;
	ASSERT_EQ(memory.map(0, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	ASSERT_EQ(memory.map(kPage, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	const auto data = pattern(64);
	ASSERT_TRUE(memory.write(kPage - 32, data));
	std::vector<weft::MemorySegment> segments;
	EXPECT_FALSE(memory.translate(kPage, 2 * kPage, Access::read, segments));
	EXPECT_TRUE(segments.empty());
	ASSERT_TRUE(memory.translate(kPage - 32, 64, Access::read, segments));
	memory.clear();
	ASSERT_EQ(segments.size(), 2u);
	EXPECT_EQ(segments[0].size, 32u);
	EXPECT_EQ(segments[1].size, 32u);
	EXPECT_EQ(std::memcmp(segments[0].data, data.data(), 32), 0);
	EXPECT_EQ(std::memcmp(segments[1].data, data.data() + 32, 32), 0);
}

// Integers must be aligned, and are accessed as a whole.
TEST(GuestMemory, IntegerAccessMustBeAligned)
{
	GuestMemory memory;
	ASSERT_EQ(memory.map(0, kPage, true, true, MemoryMapping::allocate(kPage)),
		  MapResult::mapped);
	EXPECT_TRUE(memory.store<std::uint32_t>(8, 0x01020304));
	EXPECT_EQ(memory.load<std::uint32_t>(8), 0x01020304u);
	EXPECT_FALSE(memory.store<std::uint32_t>(6, 1));
	EXPECT_FALSE(memory.load<std::uint64_t>(4));
	EXPECT_FALSE(memory.fetch_add(4, 1));
	EXPECT_FALSE(memory.load<std::uint64_t>(kPage));
}

// Atomic operations return the former value, and concurrent ones lose no update.
TEST(GuestMemory, ConcurrentAtomicsLoseNoUpdate)
{
	const auto mapping = MemoryMapping::allocate(kPage);
	GuestMemory memory;
	ASSERT_EQ(memory.map(0, kPage, true, true, mapping), MapResult::mapped);
	EXPECT_EQ(memory.compare_swap(0, 0, 5), 0u);
	EXPECT_EQ(memory.compare_swap(0, 0, 9), 5u);
	EXPECT_EQ(memory.fetch_add(0, 2), 5u);
	EXPECT_EQ(memory.load<std::uint64_t>(0), 7u);

	constexpr int rounds = 20000;
	auto add = [&] {
		GuestMemory own;
		own.map(0, kPage, true, true, mapping);
		for (int i = 0; i < rounds; ++i)
			own.fetch_add(64, 1);
	};
	std::thread first(add), second(add);
	first.join();
	second.join();
	EXPECT_EQ(memory.load<std::uint64_t>(64), 2u * rounds);
}

} // namespace
