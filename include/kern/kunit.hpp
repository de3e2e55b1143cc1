// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines KUnit suites in C++.
//
//	#include <kern/kunit.hpp>
//
//	/* Iteration returns the elements of a list in insertion order. */
//	static void list_iterates_in_insertion_order(kern::kunit::Test &test)
//	{
//		…
//		ASSERT_OK(result);		// a failure of ASSERT_… returns from the function: destructors run
//		EXPECT_EQ(list.size(), 2u);
//	}
//
//	KUNIT_SUITE(kern_list, KUNIT_CASE(list_iterates_in_insertion_order), …);
//
// A test function that no suite lists is unused, which is a compiler error. A test that checks
// nothing fails. A test module consists of such files and of a module.c, which contains
// `KERN_MODULE_INFO("…")`. The module's lines in the directory's Kbuild are inside `ifdef
// CONFIG_KUNIT`.
#pragma once
#include <type_traits>
#include <kern/abi/debug.h>
#include <kern/abi/kunit.h>
#include <kern/atomic.hpp>
#include <kern/result.hpp>

/* The kernel finds suites in this section. */
#ifndef KERN_KUNIT_SECTION
#define KERN_KUNIT_SECTION ".kunit_test_suites"
#endif

namespace kern::kunit
{

/* One run of one test. Threads for which the test waits may use its checks, too. */
class Test
{
public:
	explicit Test(::kunit *native) : native_(native) {}
	Test(const Test &) = delete;
	Test &operator=(const Test &) = delete;

	/* Returns the seed for SeededRandom. It is printed if the test fails. */
	u64 seed()
	{
		if (!seeded_) {
			seed_ = kern_kunit_seed();
			seeded_ = true;
		}
		return seed_;
	}
	bool failed() const { return kern_kunit_failed(native_); }
	/* Skips the test for this reason. The test must then return. */
	void skip(const char *why)
	{
		checks_.add_relaxed(1);
		kern_kunit_skip(native_, why);
	}
	/*
	 * Returns true if there is another CPU, for tests that need concurrency without sleeping.
	 * Otherwise it skips the test, which must then return.
	 */
	bool needs_another_cpu()
	{
		if (kern_cpu_count() < 2)
			skip("there is one CPU");
		return kern_cpu_count() >= 2;
	}
	::kunit *native() const { return native_; }

	bool expect(bool holds, const char *text, const char *file, int line)
	{
		checks_.add_relaxed(1);
		if (!holds)
			kern_kunit_fail(native_, file, line, text);
		return holds;
	}
	template<class Relation, class A, class B>
	bool compare(Relation relation, const A &a, const char *a_text, const char *relation_text,
		     const B &b, const char *b_text, const char *file, int line)
	{
		const bool holds = relation(a, b);
		checks_.add_relaxed(1);
		if (!holds) {
			const kern_kunit_value left = value(a, a_text), right = value(b, b_text);
			kern_kunit_fail_compare(native_, file, line, relation_text, &left, &right);
		}
		return holds;
	}

	void finish()
	{
		if (seeded_ && failed())
			kern_kunit_note(native_, "seed %lu (repeat with weft_kern.kunit_seed=)",
					seed_);
		if (checks_.load_relaxed() == 0)
			kern_kunit_fail(native_, __FILE__, __LINE__, "the test checked nothing");
	}

private:
	template<class T>
	static kern_kunit_value value(const T &v, const char *text)
	{
		if constexpr (std::is_pointer_v<T>)
			return {text, KERN_KUNIT_POINTER, reinterpret_cast<u64>(v)};
		else if constexpr (std::is_null_pointer_v<T>)
			return {text, KERN_KUNIT_POINTER, 0};
		else if constexpr (std::is_enum_v<T>)
			return value(static_cast<std::underlying_type_t<T>>(v), text);
		else if constexpr (std::is_integral_v<T>)
			return {text, std::is_signed_v<T> ? KERN_KUNIT_SIGNED : KERN_KUNIT_UNSIGNED,
				static_cast<u64>(v)};
		else
			return {text, KERN_KUNIT_UNSIGNED, static_cast<u64>(v.value())};
	}

	::kunit *native_;
	Atomic<unsigned int> checks_;
	bool seeded_ = false;
	u64 seed_ = 0;
};

/* A device that supports DMA. It exists as long as this object. */
class FakeDevice
{
public:
	explicit FakeDevice(const char *name) : native_(kern_kunit_device_create(name)) {}
	~FakeDevice()
	{
		if (native_)
			kern_kunit_device_destroy(native_);
	}
	FakeDevice(const FakeDevice &) = delete;
	FakeDevice &operator=(const FakeDevice &) = delete;

	/* Returns nullptr if there was no memory. */
	device *native() const { return native_; }

private:
	device *native_;
};

/* Has the layout of the kernel's struct kunit_case. */
struct Case {
	void (*run)(::kunit *native);
	const char *name;
	void *rest[KERN_SIZEOF_kunit_case / 8 - 2];
};
static_assert(sizeof(Case) == KERN_SIZEOF_kunit_case && KERN_OFFSETOF_kunit_case_run_case == 0 &&
	      KERN_OFFSETOF_kunit_case_name == 8);

/* Has the layout of the kernel's struct kunit_suite. */
struct Suite {
	char name[KERN_SIZEOF_kunit_suite_name];
	void *before_init[(KERN_OFFSETOF_kunit_suite_init - KERN_SIZEOF_kunit_suite_name) / 8];
	int (*init)(::kunit *native);
	void *before_cases[(KERN_OFFSETOF_kunit_suite_test_cases - KERN_OFFSETOF_kunit_suite_init) /
				   8 -
			   1];
	Case *cases;
	void *rest[(KERN_SIZEOF_kunit_suite - KERN_OFFSETOF_kunit_suite_test_cases) / 8 - 1];
};
static_assert(sizeof(Suite) == KERN_SIZEOF_kunit_suite && KERN_OFFSETOF_kunit_suite_name == 0 &&
	      __builtin_offsetof(Suite, init) == KERN_OFFSETOF_kunit_suite_init &&
	      __builtin_offsetof(Suite, cases) == KERN_OFFSETOF_kunit_suite_test_cases);

template<void (*Function)(Test &)>
void run_case(::kunit *native)
{
	Test test(native);
	Function(test);
	test.finish();
}

/* Calls Function before each case of a suite. */
template<void (*Function)()>
int run_before(::kunit *)
{
	Function();
	return 0;
}

} // namespace kern::kunit

#define KUNIT_CASE(function)                                                                       \
	{                                                                                          \
		&::kern::kunit::run_case<&function>, #function, {}                                 \
	}

/* Defines the suite of a file. A file can have only one. */
#define KUNIT_SUITE(suite_name, ...) KERN_KUNIT_SUITE(suite_name, nullptr, __VA_ARGS__)
/*
 * Like KUNIT_SUITE, with a function without parameters that is called before each case, so that
 * cases can run with different settings.
 */
#define KUNIT_SUITE_BEFORE(suite_name, function, ...)                                              \
	KERN_KUNIT_SUITE(suite_name, &::kern::kunit::run_before<&function>, __VA_ARGS__)
#define KERN_KUNIT_SUITE(suite_name, before, ...)                                                  \
	static constinit ::kern::kunit::Case kern_kunit_cases_##suite_name[] = {__VA_ARGS__, {}};  \
	static constinit ::kern::kunit::Suite kern_kunit_suite_##suite_name{                       \
		#suite_name, {}, before, {}, kern_kunit_cases_##suite_name, {}};                   \
	[[gnu::used, gnu::section(KERN_KUNIT_SECTION)]] static constinit ::kern::kunit::Suite      \
		*kern_kunit_suite_entry_##suite_name = &kern_kunit_suite_##suite_name

/*
 * All of these macros use a variable `test`. After a failure, EXPECT_… continues, and ASSERT_…
 * returns from the function, which must return void.
 */
#define EXPECT_TRUE(condition)                                                                     \
	test.expect(!!(condition), "expected " #condition, __FILE__, __LINE__)
#define EXPECT_FALSE(condition)                                                                    \
	test.expect(!(condition), "expected not " #condition, __FILE__, __LINE__)
#define KERN_KUNIT_COMPARE(a, relation, b)                                                         \
	test.compare([](const auto &x, const auto &y) { return x relation y; }, a, #a, #relation,  \
		     b, #b, __FILE__, __LINE__)
#define EXPECT_EQ(a, b) KERN_KUNIT_COMPARE(a, ==, b)
#define EXPECT_NE(a, b) KERN_KUNIT_COMPARE(a, !=, b)
#define EXPECT_LT(a, b) KERN_KUNIT_COMPARE(a, <, b)
#define EXPECT_LE(a, b) KERN_KUNIT_COMPARE(a, <=, b)
#define EXPECT_GT(a, b) KERN_KUNIT_COMPARE(a, >, b)
#define EXPECT_GE(a, b) KERN_KUNIT_COMPARE(a, >=, b)
/* The same checks for a Result. */
#define EXPECT_OK(result) EXPECT_EQ((result).error(), 0)
#define EXPECT_ERROR(result, code) EXPECT_EQ((result).error(), code)

#define KERN_KUNIT_OR_RETURN(check)                                                                \
	do {                                                                                       \
		if (!(check))                                                                      \
			return;                                                                    \
	} while (0)
#define ASSERT_TRUE(condition) KERN_KUNIT_OR_RETURN(EXPECT_TRUE(condition))
#define ASSERT_FALSE(condition) KERN_KUNIT_OR_RETURN(EXPECT_FALSE(condition))
#define ASSERT_EQ(a, b) KERN_KUNIT_OR_RETURN(EXPECT_EQ(a, b))
#define ASSERT_NE(a, b) KERN_KUNIT_OR_RETURN(EXPECT_NE(a, b))
#define ASSERT_LT(a, b) KERN_KUNIT_OR_RETURN(EXPECT_LT(a, b))
#define ASSERT_LE(a, b) KERN_KUNIT_OR_RETURN(EXPECT_LE(a, b))
#define ASSERT_GT(a, b) KERN_KUNIT_OR_RETURN(EXPECT_GT(a, b))
#define ASSERT_GE(a, b) KERN_KUNIT_OR_RETURN(EXPECT_GE(a, b))
#define ASSERT_OK(result) KERN_KUNIT_OR_RETURN(EXPECT_OK(result))
