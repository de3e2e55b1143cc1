// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the expectations and helpers of include/kern/abi/kunit.h for KUnit cases that run in
// the simulation.
#include "kunit.hpp"
#include <cstdarg>
#include <cstdio>
#include <kern/abi/kunit.h>
#include <kern/layout.h>
#include "failure.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

struct kunit {
	std::string skipped;
};

using namespace sim;

namespace
{

/* The layout of the structures in include/kern/kunit.hpp. */
struct NativeCase {
	void (*run)(kunit *);
	const char *name;
	void *rest;
};
static_assert(sizeof(NativeCase) == KERN_SIZEOF_kunit_case);

struct NativeSuite {
	char name[KERN_SIZEOF_kunit_suite_name];
	void *before_init;
	int (*init)(kunit *);
	void *before_cases;
	NativeCase *cases;
	void *rest;
};
static_assert(sizeof(NativeSuite) == KERN_SIZEOF_kunit_suite &&
	      offsetof(NativeSuite, init) == KERN_OFFSETOF_kunit_suite_init &&
	      offsetof(NativeSuite, cases) == KERN_OFFSETOF_kunit_suite_test_cases);

std::string shown(const kern_kunit_value &value)
{
	switch (value.kind) {
	case KERN_KUNIT_SIGNED:
		return std::to_string(static_cast<long>(value.bits));
	case KERN_KUNIT_UNSIGNED:
		return std::to_string(value.bits);
	case KERN_KUNIT_POINTER:
		return value.bits ? "a pointer" : "NULL";
	}
	return {};
}

std::string place(const char *file, int line)
{
	return std::string(file) + ":" + std::to_string(line);
}

} // namespace

namespace sim
{

std::vector<Case> cases_of(const void *const *begin, const void *const *end)
{
	std::vector<Case> cases;

	for (const void *const *entry = begin; entry != end; entry++) {
		const auto &suite = *static_cast<const NativeSuite *>(*entry);
		for (const NativeCase *one = suite.cases; one->run; one++)
			cases.push_back(
				{std::string(suite.name) + "." + one->name, suite.init, one->run});
	}
	return cases;
}

std::string run_case(const Case &one)
{
	kunit test;

	if (one.before)
		one.before(&test);
	one.run(&test);
	return test.skipped;
}

} // namespace sim

extern "C" {

void kern_kunit_fail(struct kunit *, const char *file, int line, const char *text)
{
	fail(text, place(file, line));
}

void kern_kunit_fail_compare(struct kunit *, const char *file, int line, const char *relation,
			     const struct kern_kunit_value *left,
			     const struct kern_kunit_value *right)
{
	fail(std::string("expected ") + left->expression + " " + relation + " " + right->expression,
	     place(file, line) + ": " + left->expression + " is " + shown(*left) + ", " +
		     right->expression + " is " + shown(*right));
}

void kern_kunit_skip(struct kunit *test, const char *why)
{
	test->skipped = why;
}

void kern_kunit_note(struct kunit *, const char *, ...) {}

/* A failed check ends the run, so this is never called after one. */
bool kern_kunit_failed(struct kunit *)
{
	return false;
}

u64 kern_kunit_seed(void)
{
	return scheduler().strategy().seed() | 1;
}
}
