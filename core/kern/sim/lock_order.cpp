// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "lock_order.hpp"
#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include "failure.hpp"
#include "scheduler.hpp"

namespace sim
{

void check_may_sleep(const std::string &what)
{
	if (!scheduler().inside())
		return;
	const Fiber &self = scheduler().current();
	if (self.may_sleep())
		return;
	std::string why = self.kind == Kind::hard_interrupt   ? "in a hard interrupt"
			  : self.kind == Kind::soft_interrupt ? "in a soft interrupt"
							      : "";
	for (const HeldLock &held : self.held)
		why += " holding " + lock_name(held.lock_class);
	if (self.rcu_readers)
		why += " as an RCU reader";
	if (self.bh_off)
		why += " with soft interrupts off";
	if (self.non_block)
		why += " where sleeping is forbidden";
	fail("a function that may sleep is called in atomic context",
	     self.name + " " + what + ", " + why + "; " + describe(self.place));
}

namespace
{

struct LockClass {
	std::string name;
	// Classes that were taken while a lock of this class was held, with the position of the
	// first time.
	std::map<const void *, Place> followers;
	// The contexts in which spin locks of the class have been taken.
	bool in_hard_interrupt = false, in_soft_interrupt = false;
	bool with_hard_interrupts_on = false, with_soft_interrupts_on = false;
};

std::map<const void *, LockClass> classes;

/*
 * Returns true if locks have been taken in an order that leads from one class to another. Adds a
 * description of the chain to @path.
 */
bool leads_to(const void *from, const void *to, std::set<const void *> &seen, std::string &path)
{
	if (!seen.insert(from).second)
		return false;
	for (const auto &[next, place] : classes[from].followers) {
		if (next != to && !leads_to(next, to, seen, path))
			continue;
		path = "  " + classes[next].name + " was taken under " + classes[from].name + ": " +
		       describe(place) + "\n" + path;
		return true;
	}
	return false;
}

void note_use(LockClass &its, const Fiber &self)
{
	if (self.kind == Kind::hard_interrupt)
		its.in_hard_interrupt = true;
	else if (self.irqs_off == 0)
		its.with_hard_interrupts_on = true;
	if (self.kind == Kind::soft_interrupt)
		its.in_soft_interrupt = true;
	else if (self.kind == Kind::task && self.irqs_off == 0 && self.bh_off == 0)
		its.with_soft_interrupts_on = true;
	if (its.in_hard_interrupt && its.with_hard_interrupts_on)
		fail("a lock of hard interrupts is taken with hard interrupts enabled",
		     its.name + ", " + describe(self.place));
	if (its.in_soft_interrupt && its.with_soft_interrupts_on)
		fail("a lock of soft interrupts is taken with soft interrupts enabled",
		     its.name + ", " + describe(self.place));
}

} // namespace

std::string lock_name(const void *lock_class)
{
	const auto found = classes.find(lock_class);

	return found == classes.end() ? "a lock" : found->second.name;
}

namespace lock_order
{

void name(const void *lock_class, const char *name)
{
	classes[lock_class].name = name;
}

void taking(const void *lock, const void *lock_class, bool spins)
{
	const Fiber &self = scheduler().current();
	LockClass &its = classes[lock_class];

	if (spins)
		note_use(its, self);
	for (const HeldLock &held : self.held) {
		if (held.lock == lock)
			fail("a lock is taken twice", its.name + ", " + describe(self.place));
		if (held.lock_class == lock_class)
			fail("a lock is taken while another lock of its class is held",
			     its.name + ", " + describe(self.place));
		if (!classes[held.lock_class].followers.try_emplace(lock_class, self.place).second)
			continue;
		std::set<const void *> seen;
		std::string path;
		if (leads_to(lock_class, held.lock_class, seen, path))
			fail("circular lock dependency",
			     "  " + its.name + " is taken under " + classes[held.lock_class].name +
				     ": " + describe(self.place) + "\n" + path);
	}
}

void took(const void *lock, const void *lock_class)
{
	scheduler().current().held.push_back({lock, lock_class});
}

void released(const void *lock)
{
	auto &held = scheduler().current().held;
	const auto found = std::find_if(held.rbegin(), held.rend(),
					[&](const HeldLock &one) { return one.lock == lock; });

	if (found == held.rend())
		fail("a lock is released by a fiber that does not hold it",
		     describe(scheduler().current().place));
	held.erase(std::next(found).base());
}

bool holds(const void *lock)
{
	const auto &held = scheduler().current().held;

	return std::any_of(held.begin(), held.end(),
			   [&](const HeldLock &one) { return one.lock == lock; });
}

std::string held_within(const void *memory, std::size_t size)
{
	const auto *begin = static_cast<const std::byte *>(memory);

	for (const Fiber *fiber : scheduler().fibers())
		for (const HeldLock &held : fiber->held)
			if (held.lock >= begin && held.lock < begin + size)
				return lock_name(held.lock_class);
	return {};
}

void reset()
{
	classes.clear();
}

} // namespace lock_order
} // namespace sim
