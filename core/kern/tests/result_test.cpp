// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests kern::Result, which holds a value or an error, and KERN_TRY, which returns an error to the
// caller.
#include <kern/kunit.hpp>
#include <kern/memory.hpp>
#include <kern/result.hpp>

namespace
{

struct Counted {
	explicit Counted(int &c) : count(&c) { ++*count; }
	Counted(Counted &&other) noexcept : count(other.count) { ++*count; }
	~Counted() { --*count; }
	int *count;
};

kern::Result<int> half(int value)
{
	if (value % 2)
		return kern::Error{-EINVAL};
	return value / 2;
}

kern::Result<int> quarter(int value)
{
	return KERN_TRY(half(KERN_TRY(half(value))));
}

kern::Result<> refuse(int status)
{
	KERN_TRY_ERRNO(status);
	return {};
}

/* A Result carries its value, or its error and no value. */
void result_contains_a_value_or_an_error(kern::kunit::Test &test)
{
	auto good = half(8);
	ASSERT_OK(good);
	EXPECT_EQ(good.value(), 4);
	auto bad = half(3);
	EXPECT_FALSE(bad.ok());
	EXPECT_ERROR(bad, -EINVAL);
	EXPECT_EQ(half(3).value_or(7), 7);
	EXPECT_EQ(half(6).value_or(7), 3);
}

/* KERN_TRY evaluates to the value, or returns the error from the function that uses it. */
void kern_try_makes_the_enclosing_function_return_the_error(kern::kunit::Test &test)
{
	EXPECT_EQ(quarter(12).value_or(0), 3);
	EXPECT_ERROR(quarter(6), -EINVAL);
	EXPECT_ERROR(quarter(5), -EINVAL);
	EXPECT_OK(refuse(0));
	EXPECT_ERROR(refuse(-ENOMEM), -ENOMEM);
	EXPECT_ERROR(kern::check(-EBUSY), -EBUSY);
	EXPECT_OK(kern::check(5));
}

/*
 * A value with a destructor is destroyed as often as it was constructed, whether it is taken or
 * moved.
 */
void result_destroys_its_value_exactly_once(kern::kunit::Test &test)
{
	int alive = 0;
	{
		kern::Result<Counted> result{Counted(alive)};
		EXPECT_EQ(alive, 1);
		Counted taken = result.take();
		EXPECT_EQ(alive, 2);
		kern::Result<Counted> moved(std::move(result));
		EXPECT_EQ(alive, 3);
		kern::Result<Counted> none(kern::Error{-EIO});
		EXPECT_EQ(alive, 3);
	}
	EXPECT_EQ(alive, 0);
}

} // namespace

KUNIT_SUITE(kern_result, KUNIT_CASE(result_contains_a_value_or_an_error),
	    KUNIT_CASE(kern_try_makes_the_enclosing_function_return_the_error),
	    KUNIT_CASE(result_destroys_its_value_exactly_once));
