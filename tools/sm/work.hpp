// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Limits the work that the subnet manager does for the requests of other nodes before it runs other
 * tasks. Work is counted in units and not measured by a clock, so that a request costs the same on
 * any computer and in every run of a test. A unit takes about 20 ns of a CPU.
 */
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weft::sm
{

/* Costs of operations, in units. */
namespace cost
{
/* Costs of a switch on a route, of a record comparison, and of checking a subscription. */
constexpr std::int64_t kRouteHop = 1;
constexpr std::int64_t kCompared = 2;
/* Cost of matching two ports before their routes are followed. */
constexpr std::int64_t kPortPair = 2;
/* Costs of parsing and dispatching a MAD, and of building and sending one. */
constexpr std::int64_t kMadReceived = 16;
constexpr std::int64_t kMadSent = 128;
/* Cost of an SMP of a sweep and its response. */
constexpr std::int64_t kSmp = 256;

constexpr std::int64_t copied(std::size_t bytes)
{
	return 1 + static_cast<std::int64_t>(bytes / 64);
}
} // namespace cost

/* Counts work against a budget. The last item may exceed the budget. */
class Work
{
public:
	/* Budget of one requester before others are served. */
	static constexpr std::int64_t kQuantum = 128;
	/*
	 * Budget of all requesters before the manager's own tasks, and other tasks of the loop, are
	 * run.
	 */
	static constexpr std::int64_t kSlice = 32 * kQuantum;
	/* Budget of all requesters for each SMP of a sweep that is answered meanwhile. */
	static constexpr std::int64_t kShareOfSmp = cost::kSmp / 2;

	explicit Work(std::int64_t budget) : budget_(budget) {}

	void charge(std::int64_t units) { done_ += units; }
	bool left() const { return done_ < budget_; }
	std::int64_t remaining() const { return std::max<std::int64_t>(budget_ - done_, 0); }
	std::int64_t done() const { return done_; }

private:
	const std::int64_t budget_;
	std::int64_t done_ = 0;
};

} // namespace weft::sm
