// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains the main function of weft-explore, which runs test cases of weft's kernel modules under
// many interleavings of their threads; see Documentation/man/weft-explore.1.
#include <chrono>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <regex>
#include <sys/personality.h>
#include <unistd.h>
#include "child.hpp"
#include "options.hpp"
#include "report.hpp"
#include "run.hpp"

using namespace explore;

namespace
{

/* Returns false if the case failed. */
bool explore_case(const sim::Case &one, const Options &options)
{
	const auto begin = std::chrono::steady_clock::now();
	const Explored explored =
		explore_seeds(one, options.first_seed, options.last_seed, options.limits);
	const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

	if (explored.failure)
		fmt::print("{}", report(one, *explored.failure, options.limits));
	else if (!explored.skipped.empty())
		fmt::print("skipped {}: {}\n", one.name, explored.skipped);
	else
		fmt::print("passed {}: {} seeds in {:.1f} s, at most {} steps\n", one.name,
			   explored.runs, took.count(), explored.steps);
	std::fflush(stdout);
	return !explored.failure;
}

bool has_defect(const sim::Case &one)
{
	return one.name.find("_defects.") != std::string::npos;
}

int explore_all(const Options &options)
{
	const std::regex pattern(options.pattern);
	bool good = true, any = false;

	for (const sim::Case &one : cases()) {
		/*
		 * Cases with injected defects fail on purpose, so they run only if their name is
		 * given.
		 */
		if (!std::regex_search(one.name, pattern) ||
		    (has_defect(one) && options.pattern.find("_defects") == std::string::npos))
			continue;
		any = true;
		if (options.list)
			fmt::print("{}\n", one.name);
		else
			good = explore_case(one, options) && good;
	}
	if (!any)
		throw std::runtime_error(fmt::format(
			"there is no case '{}'; --list shows all cases", options.pattern));
	return good ? 0 : 1;
}

/*
 * Disables address space randomisation, so that behaviour that depends on addresses can be
 * repeated.
 */
void fix_addresses(char **argv)
{
	const int now = personality(0xffffffff);

	if (now >= 0 && !(now & ADDR_NO_RANDOMIZE) &&
	    personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) >= 0)
		execv("/proc/self/exe", argv);
}

} // namespace

int main(int argc, char **argv)
{
	fix_addresses(argv);
	try {
		const auto options = parse(argc, argv);
		return options ? explore_all(*options) : 0;
	} catch (const std::exception &error) {
		fmt::print(stderr, "weft-explore: {}\n", error.what());
		return 2;
	}
}
