// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "run.hpp"
#include <algorithm>
#include <kern/sim/calls.hpp>
#include <kern/sim/failure.hpp>
#include <kern/sim/lock_order.hpp>
#include <kern/sim/memory.hpp>
#include <kern/sim/reset.hpp>
#include <kern/sim/scheduler.hpp>
#include "kernel_image.hpp"

// Runs a scenario: loads the kernel modules under test and unloads them. The functions that start
// scenarios in the modules are in core/kern/sim/image/suites.cpp.
extern "C" const void *const *const sim_suites_begin;
extern "C" const void *const *const sim_suites_end;

extern "C" {
int weft_core_init();
void weft_core_exit();
int weft_soft_init();
void weft_soft_exit();
int weft_mad_init();
void weft_mad_exit();
int weft_ipoib_init();
void weft_ipoib_exit();
int weft_mlx4_init();
void weft_mlx4_exit();
int weft_mthca_init();
void weft_mthca_exit();
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

constexpr Module kCore{"weft_core", weft_core_init, weft_core_exit};
constexpr Module kSoft{"weft_soft", weft_soft_init, weft_soft_exit};
constexpr Module kMad{"weft_mad", weft_mad_init, weft_mad_exit};
constexpr Module kIpoib{"weft_ipoib", weft_ipoib_init, weft_ipoib_exit};
constexpr Module kMlx4{"weft_mlx4", weft_mlx4_init, weft_mlx4_exit};
constexpr Module kMthca{"weft_mthca", weft_mthca_init, weft_mthca_exit};

/* Modules that the suites with a prefix need, in loading order; the first match applies. */
struct Needs {
	const char *prefix;
	std::vector<Module> modules;
};
const Needs kNeeds[] = {
	{"simulation_defects.", {}},
	{"stack_defects.", {}},
	{"card_defects.", {}},
	{"core_", {kCore}},
	{"mad_", {kCore, kMad, kSoft}},
	{"explore_destinations", {kCore}},
	{"explore_ipoib", {kCore, kMad, kSoft, kIpoib}},
	{"explore_mlx4", {kCore, kMlx4}},
	{"explore_mthca", {kCore, kMthca}},
	{"explore_on_a_card", {kCore, kMad, kMlx4, kIpoib}},
	{"explore_resources", {kCore}},
	{"", {kCore, kSoft}},
};

const std::vector<Module> &modules_of(const std::string &name)
{
	return std::find_if(std::begin(kNeeds), std::end(kNeeds),
			    [&](const Needs &one) { return name.starts_with(one.prefix); })
		->modules;
}

void load(const std::vector<Module> &modules)
{
	for (const Module &module : modules)
		if (int error = module.init())
			sim::fail(std::string(module.name) + " cannot be loaded",
				  std::to_string(error));
}

void unload(const std::vector<Module> &modules)
{
	for (auto module = modules.rbegin(); module != modules.rend(); ++module)
		module->exit();
}

void check_nothing_left()
{
	if (const std::string left = sim::calls::left(); !left.empty())
		sim::fail("a call is still pending after all modules were unloaded", left);
	if (const std::string left = sim::left_queues(); !left.empty())
		sim::fail("a work queue was not destroyed before all modules were unloaded", left);
	if (const std::string left = sim::left_interfaces(); !left.empty())
		sim::fail("a network interface remains after all modules were unloaded", left);
	if (const std::string left = sim::left_mappings(); !left.empty())
		sim::fail("a device remains after all modules were unloaded", left);
	if (const std::string left = sim::memory::left(); !left.empty())
		sim::fail("memory was not freed before all modules were unloaded", left);
}

} // namespace

const std::vector<sim::Case> &cases()
{
	static const auto kAll = sim::cases_of(sim_suites_begin, sim_suites_end);
	return kAll;
}

Run run(const sim::Case &one, sim::Strategy &strategy, std::uint64_t limit)
{
	Run result{};

	restore_kernel_image();
	sim::calls::reset();
	sim::lock_order::reset();
	sim::memory::reset();
	sim::reset_rcu();
	sim::reset_works();
	sim::reset_devices();
	sim::reset_interfaces();
	sim::reset_functions();
	sim::reset_messages();
	const auto &modules = modules_of(one.name);
	sim::scheduler().run(strategy, limit, [&] {
		load(modules);
		result.skipped = sim::run_case(one);
		unload(modules);
	});
	result.steps = sim::scheduler().steps();
	check_nothing_left();
	return result;
}

} // namespace explore
