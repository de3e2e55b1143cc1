// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Counts the rule violations that a debug build reports.
#pragma once
#include <kern/atomic.hpp>
#include "../checks.hpp"

namespace fixture
{

using verbs::Rule;

/* Receives reports instead of the log while it exists. Only one can exist at a time. */
class Observer
{
public:
	Observer()
	{
		for (auto &count : counts_)
			count.store_relaxed(0);
		ib_set_misuse_observer(observe);
	}
	~Observer() { ib_set_misuse_observer(nullptr); }
	Observer(const Observer &) = delete;
	Observer &operator=(const Observer &) = delete;

	unsigned int count(Rule rule) const
	{
		return counts_[static_cast<int>(rule)].load_relaxed();
	}
	/* The text of the last report, and the owner that it names. */
	const char *last() const { return last_.load_relaxed(); }
	const char *last_owner() const { return last_owner_.load_relaxed(); }
	unsigned int total() const
	{
		unsigned int sum = 0;
		for (auto &count : counts_)
			sum += count.load_relaxed();
		return sum;
	}

private:
	static void observe(int rule, const char *owner, const char *what)
	{
		counts_[rule].add_relaxed(1);
		last_owner_.store_relaxed(owner);
		last_.store_relaxed(what);
	}
	static inline constinit kern::Atomic<const char *> last_{nullptr};
	static inline constinit kern::Atomic<const char *> last_owner_{nullptr};
	static inline constinit kern::Atomic<unsigned int>
		counts_[static_cast<int>(Rule::mandatory_attribute) + 1] = {};
};

} // namespace fixture
