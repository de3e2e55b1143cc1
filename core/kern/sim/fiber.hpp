// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines fibers. A fiber is a thread of execution of the simulated kernel, with its own stack: a
// task, or an interrupt. Fibers run as if each had its own CPU.
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
	// waits until it is woken, or until its deadline
	blocked,
	finished,
};

inline constexpr std::uint64_t never = ~std::uint64_t{0};

/*
 * The position of a fiber: the call that it is about to make, the object of the call, and the
 * caller.
 */
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

	/* Prepares the fiber to call `body`. Its previous body must have finished. */
	void prepare(unsigned int id, Kind kind, std::string name, std::function<void()> body);
	/* Switches to this fiber; returns when another fiber switches to `from`. */
	void resume(Fiber &from);
	/* Returns the fiber that represents the program's initial thread. */
	static Fiber &root();

	bool may_sleep() const
	{
		return kind == Kind::task && preempt_off == 0 && bh_off == 0 && irqs_off == 0 &&
		       rcu_readers == 0 && non_block == 0;
	}
	/*
	 * Returns true if a grace period waits for this fiber. The kernel's RCU waits for all code
	 * that cannot be preempted.
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
	// Numbers of sections that the fiber has entered and not left.
	unsigned int preempt_off = 0, bh_off = 0, irqs_off = 0, rcu_readers = 0, non_block = 0;
	// Number of sections that delay a grace period.
	std::uint64_t section = 0;
	std::vector<HeldLock> held;
	Place place;
	// Number of steps, which are calls of the simulation and atomic accesses, and number of
	// allocations.
	std::uint64_t steps = 0, allocations = 0;
	// The object that a blocked fiber waits for.
	const volatile void *waits_for = nullptr;
	std::uint64_t deadline = never;
	// Position of this fiber in the order in which fibers became runnable.
	std::uint64_t ready = 0;
	std::uint64_t priority = 0;
	// Set between kern_wait_prepare() and kern_wait_finish().
	void *wait_entry = nullptr;
	void *thread = nullptr;
	bool works = false;
	// False while the fiber waits for its turn, because an interrupt has not begun then.
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
