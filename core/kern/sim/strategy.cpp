// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "strategy.hpp"
#include <algorithm>
#include <map>
#include <tuple>

namespace sim
{

Random::Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d)
{
	if (state_ == 0)
		state_ = 1;
	for (int i = 0; i < 4; i++)
		next();
}

std::uint64_t Random::next()
{
	state_ ^= state_ >> 12;
	state_ ^= state_ << 25;
	state_ ^= state_ >> 27;
	return (state_ * 0x2545f4914f6cdd1d) >> 16;
}

namespace
{

// Maximum number of timeouts per run that expire early, so that a fiber that waits for a minute
// does not always time out.
constexpr unsigned int leaps_of_run = 16;

class Walk final : public Strategy
{
public:
	explicit Walk(std::uint64_t seed)
	    : Strategy(seed), random_(seed), one_in_(std::uint64_t{2} << random_.below(6))
	{
		leap_one_in_ = std::uint64_t{64} << random_.below(5);
		fail_one_in_ = std::uint64_t{4} << random_.below(6);
	}

	Fiber *choose(Fiber *from, const std::vector<Fiber *> &runnable, Fiber *plain) override
	{
		if (plain == from && random_.below(one_in_) != 0)
			return plain;
		return runnable[random_.below(runnable.size())];
	}
	bool lets_time_pass(const Fiber &) override
	{
		if (leaps_ >= leaps_of_run || random_.below(leap_one_in_) != 0)
			return false;
		leaps_++;
		return true;
	}
	bool fails_allocation(const Fiber &) override { return random_.below(fail_one_in_) == 0; }

private:
	Random random_;
	std::uint64_t one_in_, leap_one_in_, fail_one_in_;
	unsigned int leaps_ = 0;
};

class Priorities final : public Strategy
{
public:
	Priorities(std::uint64_t seed, std::uint64_t length) : Strategy(seed), random_(seed)
	{
		const std::uint64_t changes = 1 + random_.below(3);
		for (std::uint64_t i = 0; i < changes; i++)
			changes_.push_back(random_.below(length + 1));
		leap_at_ = random_.below(3) == 0 ? random_.below(length + 1) : never;
		fail_one_in_ = std::uint64_t{4} << random_.below(6);
	}

	void begins(Fiber &fiber) override { fiber.priority = top + random_.below(top); }
	void has_spun(Fiber &fiber) override { fiber.priority = --lowest_; }

	Fiber *choose(Fiber *from, const std::vector<Fiber *> &runnable, Fiber *) override
	{
		if (std::find(changes_.begin(), changes_.end(), steps_) != changes_.end())
			from->priority = --lowest_;
		steps_++;
		return *std::max_element(runnable.begin(), runnable.end(), [](Fiber *a, Fiber *b) {
			return std::tuple(a->priority, b->ready) <
			       std::tuple(b->priority, a->ready);
		});
	}
	bool lets_time_pass(const Fiber &) override
	{
		if (steps_ < leap_at_)
			return false;
		leap_at_ = never;
		return true;
	}
	bool fails_allocation(const Fiber &) override { return random_.below(fail_one_in_) == 0; }

private:
	// Priorities of new fibers are above those of all fibers that were demoted.
	static constexpr std::uint64_t top = std::uint64_t{1} << 40;

	Random random_;
	std::vector<std::uint64_t> changes_;
	std::uint64_t leap_at_, fail_one_in_, steps_ = 0, lowest_ = top;
};

class Planned final : public Strategy
{
public:
	Planned(std::uint64_t seed, const Plan &plan) : Strategy(seed)
	{
		for (const Decision &decision : plan)
			decisions_[{decision.what, decision.fiber, decision.at}] = decision.next;
	}

	Fiber *choose(Fiber *from, const std::vector<Fiber *> &runnable, Fiber *plain) override
	{
		const auto found =
			decisions_.find({Decision::What::give_way, from->id, from->steps});
		if (found == decisions_.end())
			return plain;
		const auto next = std::find_if(runnable.begin(), runnable.end(), [&](Fiber *fiber) {
			return fiber->id == found->second;
		});
		return next == runnable.end() ? plain : *next;
	}
	bool lets_time_pass(const Fiber &from) override
	{
		return decisions_.contains({Decision::What::advance_time, from.id, from.steps});
	}
	bool fails_allocation(const Fiber &from) override
	{
		return decisions_.contains(
			{Decision::What::fail_allocation, from.id, from.allocations});
	}

private:
	std::map<std::tuple<Decision::What, std::uint32_t, std::uint64_t>, std::uint32_t>
		decisions_;
};

} // namespace

std::unique_ptr<Strategy> strategy_of_seed(std::uint64_t seed, std::uint64_t length)
{
	if (seed % 2)
		return std::make_unique<Walk>(seed);
	return std::make_unique<Priorities>(seed, length);
}

std::unique_ptr<Strategy> strategy_of_plan(std::uint64_t seed, const Plan &plan)
{
	return std::make_unique<Planned>(seed, plan);
}

Fiber *Recorder::choose(Fiber *from, const std::vector<Fiber *> &runnable, Fiber *plain)
{
	Fiber *chosen = inner_.choose(from, runnable, plain);

	if (chosen != plain)
		plan_.push_back({Decision::What::give_way, from->id, from->steps, chosen->id});
	return chosen;
}

bool Recorder::lets_time_pass(const Fiber &from)
{
	const bool passes = inner_.lets_time_pass(from);

	if (passes)
		plan_.push_back({Decision::What::advance_time, from.id, from.steps, 0});
	return passes;
}

bool Recorder::fails_allocation(const Fiber &from)
{
	const bool fails = inner_.fails_allocation(from);

	if (fails)
		plan_.push_back({Decision::What::fail_allocation, from.id, from.allocations, 0});
	return fails;
}

} // namespace sim
