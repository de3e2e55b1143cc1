// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests coherent buffers, DMA pools and mappings.
#include <kern/dma.hpp>
#include <kern/kunit.hpp>
#include <kern/span.hpp>

namespace
{

/* A coherent buffer is zeroed, aligned to a page, and has one owner. */
void coherent_buffer_is_zeroed_and_page_aligned(kern::kunit::Test &test)
{
	kern::kunit::FakeDevice device("kern-dma");
	ASSERT_TRUE(device.native() != nullptr);
	auto made = kern::DmaBuffer::create(device.native(), 3 * kern::page_size);
	ASSERT_OK(made);
	kern::DmaBuffer buffer = made.take();
	EXPECT_EQ(buffer.address() % kern::page_size, 0u);
	u64 any = 0;
	for (std::size_t i = 0; i < buffer.size() / 8; i++)
		any |= buffer.as<u64>()[i];
	EXPECT_EQ(any, 0u);
	kern::DmaBuffer moved = std::move(buffer);
	EXPECT_FALSE(static_cast<bool>(buffer));
	EXPECT_TRUE(static_cast<bool>(moved));
}

/* Allocations of a pool are aligned and do not overlap. */
void dma_pool_allocations_are_aligned_and_disjoint(kern::kunit::Test &test)
{
	kern::kunit::FakeDevice device("kern-dma");
	ASSERT_TRUE(device.native() != nullptr);
	auto made = kern::DmaPool::create("kern-test", device.native(), 192, 64);
	ASSERT_OK(made);
	kern::DmaPool pool = made.take();
	auto one = pool.alloc(kern::Gfp::kernel);
	ASSERT_OK(one);
	auto two = pool.alloc(kern::Gfp::atomic);
	if (EXPECT_OK(two)) {
		const u64 a = one.value().address, b = two.value().address;
		EXPECT_EQ(a % 64, 0u);
		EXPECT_EQ(b % 64, 0u);
		EXPECT_GE(a > b ? a - b : b - a, 192u);
		pool.free(two.value());
	}
	pool.free(one.value());
}

/* A whole page and a part of a page can be mapped; the part keeps its offset within the page. */
void dma_address_of_a_streaming_mapping_keeps_the_page_offset(kern::kunit::Test &test)
{
	kern::kunit::FakeDevice device("kern-dma");
	ASSERT_TRUE(device.native() != nullptr);
	auto made = kern::Pages::create(1, kern::Gfp::kernel);
	ASSERT_OK(made);
	kern::Pages pages = made.take();

	auto whole = kern::dma::map_single(device.native(), pages.address(), pages.size(),
					   kern::dma::Direction::from_device);
	ASSERT_OK(whole);
	kern::dma::sync_for_cpu(device.native(), whole.value(), 64,
				kern::dma::Direction::from_device);
	kern::dma::sync_for_device(device.native(), whole.value(), 64,
				   kern::dma::Direction::from_device);
	kern::dma::unmap_single(device.native(), whole.value(), pages.size(),
				kern::dma::Direction::from_device);

	auto part = kern::dma::map_page(device.native(), pages.get(), 256, 512,
					kern::dma::Direction::to_device);
	ASSERT_OK(part);
	EXPECT_EQ(part.value() % kern::page_size, 256u);
	kern::dma::unmap_page(device.native(), part.value(), 512, kern::dma::Direction::to_device);
}

/* The segments of a mapped scatter table cover all its pages. */
void sg_table_mapping_covers_all_its_pages(kern::kunit::Test &test)
{
	constexpr unsigned int count =
		300; // needs more than one chained piece of the kernel's scatter table
	kern::kunit::FakeDevice device("kern-dma");
	ASSERT_TRUE(device.native() != nullptr);
	auto made = kern::make_array<kern::Pages>(kern::Gfp::kernel, count);
	ASSERT_OK(made);
	auto &pages = made.value();
	kern::dma::ScatterTable table;
	ASSERT_OK(table.alloc(count));
	for (unsigned int i = 0; i < count; i++) {
		auto page = kern::Pages::create(0, kern::Gfp::kernel);
		ASSERT_OK(page);
		pages[i] = page.take();
		table.set_page(i, pages[i].get(), kern::page_size);
	}
	auto segments = table.map(device.native(), kern::dma::Direction::both);
	ASSERT_OK(segments);
	EXPECT_LE(segments.value(), count);
	u64 total = 0;
	unsigned int seen = 0;
	table.for_each([&](u64 address, u64 size) {
		EXPECT_EQ(address % kern::page_size, 0u);
		total += size;
		seen++;
		return true;
	});
	EXPECT_EQ(total, u64{count} * kern::page_size);
	EXPECT_EQ(seen, segments.value());
	seen = 0;
	table.for_each([&](u64, u64) { return ++seen < 2; });
	EXPECT_EQ(seen, 2u);
}

} // namespace

KUNIT_SUITE(kern_dma, KUNIT_CASE(coherent_buffer_is_zeroed_and_page_aligned),
	    KUNIT_CASE(dma_pool_allocations_are_aligned_and_disjoint),
	    KUNIT_CASE(dma_address_of_a_streaming_mapping_keeps_the_page_offset),
	    KUNIT_CASE(sg_table_mapping_covers_all_its_pages));
