// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "report.hpp"
#include <fmt/format.h>
#include "minimise.hpp"

namespace explore
{

namespace
{

constexpr unsigned int kAttemptsToMinimise = 600;

/* Returns a text with a title, or an empty string if the text is empty. */
std::string section(const std::string &title, const std::string &text)
{
	return text.empty() ? std::string()
			    : fmt::format("{}\n{}{}", title, text, text.back() == '\n' ? "" : "\n");
}

/*
 * Returns the failure with the shortest plan that causes it. The result has no interleaving if the
 * original plan does not reproduce the failure.
 */
Failure shortest(const sim::Case &one, const Failure &found, const Limits &limits)
{
	const auto again = [&](const sim::Plan &plan) {
		auto tried = follow_plan(one, found.seed, plan, limits);
		if (tried.failure && tried.failure->title != found.title)
			tried.failure.reset();
		return tried.failure;
	};
	Failure failure = found;

	failure.interleaving.clear();
	if (again(found.plan)) {
		const sim::Plan plan =
			minimise(found.plan, kAttemptsToMinimise,
				 [&](const sim::Plan &part) { return again(part).has_value(); });
		if (auto last = again(plan)) {
			failure = std::move(*last);
			failure.plan = plan;
		}
	}
	return failure;
}

} // namespace

std::string report(const sim::Case &one, const Failure &found, const Limits &limits)
{
	const Failure failure = shortest(one, found, limits);
	std::string text =
		fmt::format("failed {} at seed {}: {}\n", one.name, found.seed, failure.title);

	if (!failure.detail.empty())
		text += failure.detail + (failure.detail.back() == '\n' ? "" : "\n");
	if (failure.interleaving.empty())
		text += "Its decisions did not lead there a second time.\n";
	text += section(fmt::format("The interleaving, by {} of {} decisions:", failure.plan.size(),
				    found.plan.size()),
			failure.interleaving);
	text += section("The kernel's log:", failure.messages) +
		section("The sanitizer:", failure.report);
	return text +
	       (found.seed
			? fmt::format("Again: weft-explore '^{}$' --seeds {}\n", one.name,
				      found.seed)
			: fmt::format(
				  "Again: weft-explore '^{}$': it fails in the plain order, before any seed\n",
				  one.name));
}

} // namespace explore
