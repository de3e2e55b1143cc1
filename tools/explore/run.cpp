// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "run.hpp"
#include <algorithm>
#include <kern/hosted/calls.hpp>
#include <kern/hosted/failure.hpp>
#include <kern/hosted/lock_order.hpp>
#include <kern/hosted/memory.hpp>
#include <kern/hosted/reset.hpp>
#include <kern/hosted/scheduler.hpp>
#include "kernel_image.hpp"

// core/kern/hosted/image/suites.cpp.
extern "C" const void *const *const hosted_suites_begin;
extern "C" const void *const *const hosted_suites_end;

extern "C" {
int weft_core_init();
void weft_core_exit();
int weft_soft_init();
void weft_soft_exit();
int weft_mad_init();
void weft_mad_exit();
int weft_ipoib_init();
void weft_ipoib_exit();
int weft_connectx_init();
void weft_connectx_exit();
}

namespace explore
{

namespace
{

struct Module {
	const char *name;
	int (*init)();
	void (*exit)();
};

constexpr Module core{"weft_core", weft_core_init, weft_core_exit};
constexpr Module soft{"weft_soft", weft_soft_init, weft_soft_exit};
constexpr Module mad{"weft_mad", weft_mad_init, weft_mad_exit};
constexpr Module ipoib{"weft_ipoib", weft_ipoib_init, weft_ipoib_exit};
constexpr Module connectx{"weft_connectx", weft_connectx_init, weft_connectx_exit};

/* What the suites of a prefix stand on, in the order of loading; the first that fits. */
struct Needs {
	const char *prefix;
	std::vector<Module> modules;
};
const Needs needs[] = {
	{"planted_seam.", {}},
	{"planted_stack.", {}},
	{"planted_card.", {}},
	{"core_", {core}},
	{"mad_", {core, mad, soft}},
	{"explore_destinations", {core}},
	{"explore_ipoib", {core, mad, soft, ipoib}},
	{"explore_connectx", {core, connectx}},
	{"explore_on_a_card", {core, mad, connectx, ipoib}},
	{"explore_resources", {core}},
	{"", {core, soft}},
};

const std::vector<Module> &modules_of(const std::string &name)
{
	return std::find_if(std::begin(needs), std::end(needs),
			    [&](const Needs &one) { return name.starts_with(one.prefix); })
		->modules;
}

void load(const std::vector<Module> &modules)
{
	for (const Module &module : modules)
		if (int error = module.init())
			hosted::fail(std::string(module.name) + " cannot be loaded",
				     std::to_string(error));
}

void unload(const std::vector<Module> &modules)
{
	for (auto module = modules.rbegin(); module != modules.rend(); ++module)
		module->exit();
}

void check_nothing_left()
{
	if (const std::string left = hosted::calls::left(); !left.empty())
		hosted::fail("a call is still due when all modules have gone", left);
	if (const std::string left = hosted::left_queues(); !left.empty())
		hosted::fail("a queue of works is left when all modules have gone", left);
	if (const std::string left = hosted::left_interfaces(); !left.empty())
		hosted::fail("a network interface is left when all modules have gone", left);
	if (const std::string left = hosted::left_mappings(); !left.empty())
		hosted::fail("a device is left when all modules have gone", left);
	if (const std::string left = hosted::memory::left(); !left.empty())
		hosted::fail("memory is left when all modules have gone", left);
}

} // namespace

const std::vector<hosted::Case> &cases()
{
	static const auto all = hosted::cases_of(hosted_suites_begin, hosted_suites_end);
	return all;
}

Run run(const hosted::Case &one, hosted::Strategy &strategy, std::uint64_t limit)
{
	Run result{};

	restore_kernel_image();
	hosted::calls::reset();
	hosted::lock_order::reset();
	hosted::memory::reset();
	hosted::reset_rcu();
	hosted::reset_works();
	hosted::reset_devices();
	hosted::reset_interfaces();
	hosted::reset_functions();
	hosted::reset_messages();
	const auto &modules = modules_of(one.name);
	hosted::scheduler().run(strategy, limit, [&] {
		load(modules);
		result.skipped = hosted::run_case(one);
		unload(modules);
	});
	result.steps = hosted::scheduler().steps();
	check_nothing_left();
	return result;
}

} // namespace explore
