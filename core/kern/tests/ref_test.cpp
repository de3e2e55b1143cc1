// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests that dropping the last reference destroys the object, and that a reference count of zero
// cannot be incremented.
#include <kern/kunit.hpp>
#include <kern/ref.hpp>

namespace
{

struct Object : kern::RefCounted<Object> {
	explicit Object(int &d) : destroyed(d) {}
	~Object() { destroyed++; }
	int &destroyed;
};

/* The object is destroyed once, with its last reference. */
void object_is_destroyed_when_its_last_reference_is_released(kern::kunit::Test &test)
{
	int destroyed = 0;
	auto made = kern::make_ref<Object>(kern::Gfp::kernel, destroyed);
	ASSERT_OK(made);
	kern::Ref<Object> first = made.take();
	EXPECT_EQ(first->ref_count(), 1);
	kern::Ref<Object> second = first;
	EXPECT_EQ(first->ref_count(), 2);
	EXPECT_TRUE(first == second);
	kern::Ref<Object> third = std::move(first);
	EXPECT_EQ(third->ref_count(), 2);
	second.reset();
	EXPECT_EQ(destroyed, 0);
	third = third;
	EXPECT_EQ(destroyed, 0);
	third.reset();
	EXPECT_EQ(destroyed, 1);
}

/* A count that has reached zero cannot be incremented again. */
void ref_count_of_zero_cannot_be_incremented(kern::kunit::Test &test)
{
	kern::RefCount count;
	EXPECT_TRUE(count.get_unless_zero());
	EXPECT_FALSE(count.put());
	EXPECT_TRUE(count.put());
	EXPECT_FALSE(count.get_unless_zero());
	EXPECT_EQ(count.load(), 0);
}

} // namespace

KUNIT_SUITE(kern_ref, KUNIT_CASE(object_is_destroyed_when_its_last_reference_is_released),
	    KUNIT_CASE(ref_count_of_zero_cannot_be_incremented));
