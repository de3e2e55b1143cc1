// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A line of execution of the simulated kernel, with a stack of its own: a task, or an interrupt on
// a CPU of its own.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sim
{

enum class Kind : std::uint8_t { task, soft_interrupt, hard_interrupt };

enum class State : std::uint8_t {
	runnable,
	// The fiber waits until it is woken or its deadline has come.
	blocked,
	finished,
};

inline constexpr std::uint64_t never = ~std::uint64_t{0};

/* Where a line of execution is: the call that it is about to make, on what, and from where. */
struct Place {
	const char *call = "";
	const volatile void *object = nullptr;
	const void *caller = nullptr;
};

struct HeldLock {
	const void *lock;
	const void *lock_class;
};

class Fiber
{
public:
	Fiber();
	~Fiber();
	Fiber(const Fiber &) = delete;
	Fiber &operator=(const Fiber &) = delete;

	/* Prepares the fiber to call `body`; its previous body must have finished. */
	void prepare(unsigned int id, Kind kind, std::string name, std::function<void()> body);
	/* Switches to it; returns when another fiber switches to `from`. */
	void resume(Fiber &from);
	/*
	 * Does the same for the program's initial thread of execution, which has no stack of its
	 * own here.
	 */
	static Fiber &root();

	bool may_sleep() const
	{
		return kind == Kind::task && preempt_off == 0 && bh_off == 0 && irqs_off == 0 &&
		       rcu_readers == 0 && non_block == 0;
	}
	/*
	 * The kernel's RCU waits for everything that cannot be preempted, so these sections delay a
	 * grace period.
	 */
	bool delays_grace_period() const
	{
		return begun &&
		       (kind != Kind::task || preempt_off || bh_off || irqs_off || rcu_readers);
	}

	unsigned int id = 0;
	Kind kind = Kind::task;
	State state = State::finished;
	std::string name;
	// These count the sections that the fiber has entered and not left.
	unsigned int preempt_off = 0, bh_off = 0, irqs_off = 0, rcu_readers = 0, non_block = 0;
	// Counts the sections that delay a grace period.
	std::uint64_t section = 0;
	std::vector<HeldLock> held;
	Place place;
	// Calls of the simulation's interface and atomic accesses that it has made, and
	// allocations.
	std::uint64_t steps = 0, allocations = 0;
	// The object that a blocked fiber waits for.
	const volatile void *waits_for = nullptr;
	std::uint64_t deadline = never;
	// The rank of this fiber in the order in which fibers became runnable.
	std::uint64_t ready = 0;
	std::uint64_t priority = 0;
	// Between kern_wait_prepare() and kern_wait_finish().
	void *wait_entry = nullptr;
	void *thread = nullptr;
	bool works = false;
	// Not while it waits for its turn, because an interrupt does not count as one before it
	// begins.
	bool begun = true;

private:
	explicit Fiber(std::nullptr_t);
	[[noreturn]] static void enter();

	std::byte *stack_ = nullptr;
	void *saved_ = nullptr;
	void *fake_stack_ = nullptr;
	const void *bottom_ = nullptr;
	std::size_t size_ = 0;
	std::function<void()> body_;
};

} // namespace sim
