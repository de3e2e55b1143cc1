// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Selects the fiber that runs at each step, and the allocation that fails: at random, by priorities
// that change rarely, or according to a list of decisions (Plan).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "fiber.hpp"

namespace sim
{

/*
 * One deviation from the plain order. In the plain order, each fiber continues until it waits, and
 * then the fiber runs that has been runnable for longest. At the given step, `fiber` yields to
 * `next`; or time advances to the next deadline; or the allocation of the fiber with that number
 * fails.
 */
struct Decision {
	enum class What : std::uint32_t { give_way, advance_time, fail_allocation };
	What what;
	std::uint32_t fiber;
	std::uint64_t at;
	std::uint32_t next;
};
using Plan = std::vector<Decision>;

/* Random numbers that can be repeated (xorshift64*). */
class Random
{
public:
	explicit Random(std::uint64_t seed);
	std::uint64_t next();
	/* Returns a number from 0 to limit - 1. */
	std::uint64_t below(std::uint64_t limit) { return next() % limit; }

private:
	std::uint64_t state_;
};

class Strategy
{
public:
	virtual ~Strategy() = default;
	/*
	 * Returns one of `runnable`, which is not empty, and sorted in the order in which the
	 * fibers became runnable. @from: the fiber that has run until now; it is in the list if it
	 * is still runnable. @plain: the choice in the plain order.
	 */
	virtual Fiber *choose(Fiber *from, const std::vector<Fiber *> &runnable, Fiber *plain) = 0;
	/* Returns true if the time shall advance to the next deadline before this step. */
	virtual bool lets_time_pass(const Fiber &from) = 0;
	/*
	 * Returns true if an allocation shall fail. Called only for callers that have declared that
	 * they handle failures.
	 */
	virtual bool fails_allocation(const Fiber &from) = 0;
	virtual void begins(Fiber &) {}
	/*
	 * Called when a fiber has run for long although others are runnable, as a fiber does that
	 * waits for another one in a loop.
	 */
	virtual void has_spun(Fiber &) {}

	/* The seed for the other random choices of a run, such as the random numbers of tests. */
	std::uint64_t seed() const { return seed_; }

protected:
	explicit Strategy(std::uint64_t seed) : seed_(seed) {}

private:
	std::uint64_t seed_;
};

/*
 * Returns the strategy for a seed. Every second seed is a random walk, which switches at each step
 * with a certain probability. The others are probabilistic concurrency testing: each fiber has a
 * priority, the runnable fiber with the highest one runs and, at up to three random steps below
 * `length`, the running fiber gets the lowest priority. @length: the number of choices of a run in
 * the plain order.
 */
std::unique_ptr<Strategy> strategy_of_seed(std::uint64_t seed, std::uint64_t length);

/*
 * Returns a strategy that follows a plan exactly. @seed: the seed of the run from which the plan
 * was recorded.
 */
std::unique_ptr<Strategy> strategy_of_plan(std::uint64_t seed, const Plan &plan);

/* Follows another strategy, and records its choices as a plan. */
class Recorder final : public Strategy
{
public:
	explicit Recorder(Strategy &inner) : Strategy(inner.seed()), inner_(inner) {}
	Fiber *choose(Fiber *from, const std::vector<Fiber *> &runnable, Fiber *plain) override;
	bool lets_time_pass(const Fiber &from) override;
	bool fails_allocation(const Fiber &from) override;
	void begins(Fiber &fiber) override { inner_.begins(fiber); }
	void has_spun(Fiber &fiber) override { inner_.has_spun(fiber); }

	const Plan &plan() const { return plan_; }

private:
	Strategy &inner_;
	Plan plan_;
};

} // namespace sim
