// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements read-copy update (include/kern/abi/rcu.h). A grace period ends as early as possible:
// when all read-side sections that existed at its beginning have ended.
#include <vector>
#include <kern/abi/rcu.h>
#include "calls.hpp"
#include "failure.hpp"
#include "lock_order.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

class GracePeriod
{
public:
	GracePeriod()
	{
		for (const Fiber *fiber : scheduler().fibers())
			if (fiber != &scheduler().current() && fiber->delays_grace_period())
				sections_.push_back({fiber, fiber->id, fiber->section});
	}
	bool over() const
	{
		for (const Section &section : sections_)
			for (const Fiber *fiber : scheduler().fibers())
				if (fiber == section.fiber && fiber->id == section.id &&
				    fiber->section == section.number &&
				    fiber->delays_grace_period())
					return false;
		return true;
	}

private:
	struct Section {
		const Fiber *fiber;
		unsigned int id;
		std::uint64_t number;
	};
	std::vector<Section> sections_;
};

unsigned int deferred;

} // namespace

extern "C" {

void kern_rcu_read_lock(void)
{
	SIM_STEP(nullptr);
	enter_section(&Fiber::rcu_readers);
}

void kern_rcu_read_unlock(void)
{
	leave_section(&Fiber::rcu_readers);
	SIM_STEP(nullptr);
}

bool kern_rcu_read_lock_held(void)
{
	return scheduler().current().rcu_readers > 0;
}

void kern_rcu_synchronize(void)
{
	SIM_STEP(nullptr);
	check_may_sleep("waits for a grace period");
	const GracePeriod period;
	while (!period.over())
		scheduler().block(&grace_periods);
	SIM_STEP(nullptr);
}

void kern_rcu_call(struct kern_rcu_item *item)
{
	SIM_STEP(item);
	deferred++;
	const auto ended = [] {
		deferred--;
		scheduler().wake(&deferred);
	};
	/*
	 * If the caller itself is in a read-side section, the grace period ends after that section,
	 * too.
	 */
	const Fiber &self = scheduler().current();
	const bool inside = self.delays_grace_period();
	const unsigned int id = self.id;
	const std::uint64_t section = self.section;
	const Fiber *caller = &self;
	const auto period = GracePeriod();
	const auto over = [=] {
		return period.over() &&
		       !(inside && caller->id == id && caller->section == section &&
			 caller->delays_grace_period() && caller->state != State::finished);
	};
	const calls::Call call = {
		.kind = Kind::soft_interrupt,
		.name = "a deferred call",
		.run = [item] { item->run(item); },
		.turn = over,
		.turn_of = &grace_periods,
		.ended = ended,
	};
	if (!calls::request(item, call))
		fail("a deferred call is requested twice", describe(self.place));
}

void kern_rcu_barrier(void)
{
	SIM_STEP(nullptr);
	check_may_sleep("waits for deferred calls");
	while (deferred)
		scheduler().block(&deferred);
}
}

namespace sim
{

void reset_rcu()
{
	deferred = 0;
}

} // namespace sim
