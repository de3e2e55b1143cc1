// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the pinning of process memory: a device and the process see each other's writes, and
// requests are rejected for invalid ranges, for missing permissions, or beyond RLIMIT_MEMLOCK.
#include <kern/abi/user.h>
#include <kern/kunit_process.hpp>
#include <kern/user_memory.hpp>

namespace
{

using kern::page_size;
using kern::UserMemory;
using kern::kunit::Mapping;

struct Bench {
	kern::kunit::FakeDevice device{"kern-user-memory"};
	kern::kunit::Process process;
	u64 pinned_before = process ? process.pinned_pages() : 0;

	explicit operator bool() const { return device.native() && process; }
	kern::Result<UserMemory> pin(u64 start, u64 length, bool must_write = true)
	{
		return UserMemory::create(device.native(), start, length, must_write);
	}
	u64 pinned() const { return process.pinned_pages() - pinned_before; }
};

/* The device and the process see each other's writes, in the order of the addresses. */
void device_and_process_see_each_others_writes_to_pinned_pages(kern::kunit::Test &test)
{
	constexpr unsigned int count = 600; // more pages than are pinned in one step
	Bench bench;
	ASSERT_TRUE(bench);
	Mapping mapping(count * page_size);
	ASSERT_NE(mapping.address(), 0u);
	for (u32 i = 0; i < count; i++)
		ASSERT_EQ(kern_copy_to_user(
				  reinterpret_cast<void *>(mapping.address() + i * page_size), &i,
				  sizeof(i)),
			  0);
	auto memory = bench.pin(mapping.address() + 8, mapping.size() - 16);
	ASSERT_OK(memory);
	EXPECT_EQ(memory.value().pages(), count);
	EXPECT_EQ(bench.pinned(), count);
	EXPECT_TRUE(memory.value().writable());

	u32 page = 0;
	memory.value().for_each([&](u64 address, u64 size) {
		for (u64 at = 0; at < size; at += page_size, page++) {
			u32 *seen = static_cast<u32 *>(
				kern_kunit_dma_memory(bench.device.native(), address + at));
			EXPECT_EQ(*seen, page);
			*seen = ~page;
		}
		return true;
	});
	EXPECT_EQ(page, count);
	for (u32 i = 0; i < count; i++) {
		u32 got = 0;
		EXPECT_EQ(kern_copy_from_user(
				  &got, reinterpret_cast<void *>(mapping.address() + i * page_size),
				  sizeof(got)),
			  0);
		ASSERT_EQ(got, ~i);
	}
	memory.value() = UserMemory();
	EXPECT_EQ(bench.pinned(), 0u);
}

void pinning_of_invalid_address_ranges_is_rejected(kern::kunit::Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench);
	Mapping mapping(4 * page_size);
	ASSERT_NE(mapping.address(), 0u);
	const u64 at = mapping.address();
	EXPECT_ERROR(bench.pin(at, 0), -EINVAL);
	EXPECT_ERROR(bench.pin(~u64{0} - 4, 0), -EINVAL);
	EXPECT_ERROR(bench.pin(at, ~u64{0} - at + 1), -EINVAL);
	EXPECT_ERROR(bench.pin(at, ~u64{0} - at), -EINVAL);
	EXPECT_ERROR(bench.pin(at, ~u64{0}), -EINVAL);
	EXPECT_ERROR(bench.pin(at, u64{1} << 60), -EINVAL);
	/* Kernel addresses. */
	EXPECT_ERROR(bench.pin(reinterpret_cast<u64>(&bench) & ~u64{0xfff}, page_size), -EFAULT);
	/* There is a hole after the last page: pages pinned before it are unpinned. */
	kern_kunit_process_unmap(at + 3 * page_size, page_size);
	EXPECT_ERROR(bench.pin(at, 4 * page_size), -EFAULT);
	EXPECT_OK(bench.pin(at, 3 * page_size));
	EXPECT_EQ(bench.pinned(), 0u);
}

/*
 * Zero bytes within a page pin that page, so that the region has a valid address. At a page border
 * they name no page, and are refused as by Linux.
 */
void user_memory_of_zero_length_within_a_page_pins_that_page(kern::kunit::Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench);
	Mapping mapping(page_size);
	ASSERT_NE(mapping.address(), 0u);
	auto memory = bench.pin(mapping.address() + 8, 0);
	ASSERT_OK(memory);
	EXPECT_EQ(memory.value().pages(), 1u);
	EXPECT_EQ(memory.value().length(), 0u);
	EXPECT_EQ(bench.pinned(), 1u);
	EXPECT_EQ(memory.value().page_shift_for(mapping.address() + 8, 31), 12u);
	u32 pages = 0;
	memory.value().for_each_page(mapping.address() + 8, 12, [&](u64) { pages++; });
	EXPECT_EQ(pages, 1u);
	memory.value() = UserMemory();
	EXPECT_EQ(bench.pinned(), 0u);
}

/*
 * The device may read memory that the process may not write, if it is the process's own copy, or,
 * from Linux 6.2 on, a shared page.
 */
void pinning_read_only_memory_for_writing_is_rejected(kern::kunit::Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench);
	Mapping own(2 * page_size, false), shared(2 * page_size, false, true),
		both(2 * page_size, true, true);
	ASSERT_NE(own.address(), 0u);
	ASSERT_NE(shared.address(), 0u);
	ASSERT_NE(both.address(), 0u);
	EXPECT_ERROR(bench.pin(own.address(), own.size()), -EFAULT);
	auto read = bench.pin(own.address(), own.size(), false);
	if (EXPECT_OK(read))
		EXPECT_FALSE(read.value().writable());
	EXPECT_ERROR(bench.pin(shared.address(), shared.size()), -EFAULT);
	if (kern_kunit_process_pins_for_reading()) {
		auto of_file = bench.pin(shared.address(), shared.size(), false);
		if (EXPECT_OK(of_file))
			EXPECT_FALSE(of_file.value().writable());
	} else {
		EXPECT_ERROR(bench.pin(shared.address(), shared.size(), false), -EFAULT);
	}
	auto written = bench.pin(both.address(), both.size(), false);
	if (EXPECT_OK(written))
		EXPECT_TRUE(written.value().writable());
	EXPECT_EQ(bench.pinned(), 4u);
}

/* RLIMIT_MEMLOCK is exact to the page; a process that may lock nothing gets EPERM. */
void rlimit_memlock_is_enforced_with_page_granularity(kern::kunit::Test &test)
{
	Bench bench;
	ASSERT_TRUE(bench);
	Mapping mapping(8 * page_size);
	ASSERT_NE(mapping.address(), 0u);
	const u64 at = mapping.address();
	const u64 before = bench.pinned_before;
	bench.process.with_limit((before + 4) * page_size, [&] {
		auto three = bench.pin(at, 3 * page_size);
		EXPECT_OK(three);
		EXPECT_ERROR(bench.pin(at + 3 * page_size, page_size + 1), -ENOMEM);
		EXPECT_EQ(bench.pinned(), 3u);
		/* A page that is pinned twice counts twice. */
		auto again = bench.pin(at, 1);
		EXPECT_OK(again);
		EXPECT_ERROR(bench.pin(at, 1), -ENOMEM);
		EXPECT_EQ(bench.pinned(), 4u);
	});
	EXPECT_EQ(bench.pinned(), 0u);
	bench.process.with_limit(0, [&] { EXPECT_ERROR(bench.pin(at, 1), -EPERM); });
	/* A privileged process has no limit. */
	EXPECT_OK(bench.pin(at, 8 * page_size));
}

/* Memory whose DMA segments the test chooses. */
struct Pieces : kern::DescribedByPages<Pieces> {
	u64 first_byte, bytes;
	struct Piece {
		u64 address, size;
	} piece[3];

	constexpr Pieces(u64 start, u64 length, Piece a, Piece b, Piece c)
	    : first_byte(start), bytes(length), piece{a, b, c}
	{
	}
	u64 start() const { return first_byte; }
	u64 length() const { return bytes; }
	template<class Body>
	void for_each(Body body) const
	{
		for (const Piece &one : piece)
			if (one.size && !body(one.address, one.size))
				return;
	}
};

/*
 * A page table uses the largest page size that the memory permits, and maps each byte to its
 * address.
 */
void page_table_of_user_memory_uses_the_largest_possible_page_size(kern::kunit::Test &test)
{
	static constexpr struct {
		const char *what;
		Pieces memory;
		u64 iova;
		unsigned int shift, pages;
	} cases[] = {
		{"pages apart",
		 {0x1000, 0x3000, {0x5000, 0x1000}, {0x9000, 0x1000}, {0x2000, 0x1000}},
		 0x1000,
		 12,
		 3},
		{"a border within a large page",
		 {0, 0x2000, {0x40000000, 0x1000}, {0x50001000, 0x1000}, {}},
		 0,
		 12,
		 2},
		{"large pages",
		 {0,
		  0x600000,
		  {0x40000000, 0x200000},
		  {0x80000000, 0x200000},
		  {0x600000, 0x200000}},
		 0,
		 21,
		 3},
		{"the first begins within",
		 {0x1ff064, 0x201000, {0x7ff000, 0x1000}, {0x200000, 0x200000}, {0xa00000, 0x1000}},
		 0x1ff064,
		 21,
		 3},
		{"the last ends within",
		 {0, 0x201000, {0x40000000, 0x200000}, {0x600000, 0x1000}, {}},
		 0x200000,
		 21,
		 2},
		{"the iova is elsewhere in its page",
		 {0, 0x400000, {0x40000000, 0x200000}, {0x600000, 0x200000}, {}},
		 0x4000,
		 14,
		 256},
		{"one page that holds all",
		 {0x64, 0x2000, {0x40002000, 0x3000}, {}, {}},
		 0x2064,
		 15,
		 1},
		{"one piece, one page",
		 {0, 0x200000, {0x40000000, 0x200000}, {}, {}},
		 0x600000,
		 21,
		 1},
		{"zero bytes within a page", {0x64, 0, {0x7000, 0x1000}, {}, {}}, 0x5064, 12, 1},
		{"at the end of all addresses",
		 {0, 0x1000, {0x7000, 0x1000}, {}, {}},
		 ~u64{0} - 0x1fff,
		 12,
		 1},
		{"up to the last address",
		 {0, 0x2000, {0x7000, 0x1000}, {0x3000, 0x1000}, {}},
		 ~u64{0} - 0x1fff,
		 12,
		 2},
	};
	for (const auto &one : cases) {
		const unsigned int shift = one.memory.page_shift_for(one.iova, 31);
		test.expect(shift == one.shift, one.what, __FILE__, __LINE__);
		EXPECT_EQ(one.memory.page_shift_for(one.iova, 12), 12u);
		u64 entries[3] = {};
		u32 count = 0;
		one.memory.for_each_page(one.iova, shift, [&](u64 address) {
			EXPECT_EQ(address & ((u64{1} << shift) - 1), 0u);
			if (count < 3)
				entries[count] = address;
			count++;
		});
		EXPECT_EQ(count, one.pages);
		if (count > 3)
			continue;
		u64 at = one.iova - one.memory.start() % page_size;
		one.memory.for_each([&](u64 address, u64 size) {
			for (u64 done = 0; done < size; done += page_size, at += page_size)
				EXPECT_EQ(entries[(at >> shift) - (one.iova >> shift)] +
						  (at & ((u64{1} << shift) - 1)),
					  address + done);
			return true;
		});
	}
}

KUNIT_SUITE(kern_user_memory, KUNIT_CASE(device_and_process_see_each_others_writes_to_pinned_pages),
	    KUNIT_CASE(pinning_of_invalid_address_ranges_is_rejected),
	    KUNIT_CASE(user_memory_of_zero_length_within_a_page_pins_that_page),
	    KUNIT_CASE(pinning_read_only_memory_for_writing_is_rejected),
	    KUNIT_CASE(rlimit_memlock_is_enforced_with_page_granularity),
	    KUNIT_CASE(page_table_of_user_memory_uses_the_largest_possible_page_size));

} // namespace
