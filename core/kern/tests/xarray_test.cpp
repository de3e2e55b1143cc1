// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that XArrays find objects by index, and that no index or ID is allocated twice.
#include <kern/kunit.hpp>
#include <kern/xarray.hpp>

namespace
{

/* An object is found only at its index, and no other object can be inserted there. */
void xarray_finds_objects_by_index(kern::kunit::Test &test)
{
	kern::XArray<long> array;
	long a = 1, b = 2;

	EXPECT_TRUE(array.empty());
	EXPECT_EQ(array.load(0), nullptr);
	EXPECT_OK(array.insert(7, &a));
	EXPECT_OK(array.insert(0xffffffffff, &b));
	EXPECT_ERROR(array.insert(7, &b), -EBUSY);
	EXPECT_EQ(array.load(7), &a);
	EXPECT_EQ(array.load(0xffffffffff), &b);
	EXPECT_EQ(array.load(8), nullptr);
	long sum = 0;
	array.for_each([&](unsigned long, long &value) { sum += value; });
	EXPECT_EQ(sum, 3);
	EXPECT_EQ(array.erase(7), &a);
	EXPECT_EQ(array.erase(7), nullptr);
	EXPECT_EQ(array.erase(0xffffffffff), &b);
	EXPECT_TRUE(array.empty());
}

/* Allocated indices are unique and in their range. When all are in use, allocation fails. */
void xarray_allocates_free_indices(kern::kunit::Test &test)
{
	kern::XArray<long> array;
	long object = 0;
	u32 next = 0;

	EXPECT_EQ(array.alloc(&object, 3, 4).value_or(0), 3u);
	EXPECT_EQ(array.alloc(&object, 3, 4).value_or(0), 4u);
	EXPECT_ERROR(array.alloc(&object, 3, 4), -EBUSY);
	EXPECT_EQ(array.erase(3), &object);
	EXPECT_EQ(array.alloc(&object, 3, 4).value_or(0), 3u);
	EXPECT_EQ(array.alloc_cyclic(&object, 10, 12, next).value_or(0), 10u);
	EXPECT_EQ(array.erase(10), &object);
	EXPECT_EQ(array.alloc_cyclic(&object, 10, 12, next).value_or(0), 11u);
	for (u32 index : {3, 4, 11})
		EXPECT_EQ(array.erase(index), &object);
}

/* A number in use is not allocated again until it has been freed. */
void id_allocator_returns_no_id_that_is_in_use(kern::kunit::Test &test)
{
	kern::IdAllocator ids;

	EXPECT_EQ(ids.alloc(1, 2).value_or(0), 1u);
	EXPECT_EQ(ids.alloc(1, 2).value_or(0), 2u);
	EXPECT_ERROR(ids.alloc(1, 2), -ENOSPC);
	ids.free(1);
	EXPECT_EQ(ids.alloc(1, 2).value_or(0), 1u);
	ids.free(1);
	ids.free(2);
	EXPECT_TRUE(ids.empty());
}

} // namespace

KUNIT_SUITE(kern_xarray, KUNIT_CASE(xarray_finds_objects_by_index),
	    KUNIT_CASE(xarray_allocates_free_indices),
	    KUNIT_CASE(id_allocator_returns_no_id_that_is_in_use));
