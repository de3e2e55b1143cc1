// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements clocks, sleeps, random numbers and kernel threads with virtual time
// (include/kern/abi/time.h, thread.h). Random numbers are derived from the run's seed.
#include <cerrno>
#include <cstring>
#include <kern/abi/thread.h>
#include <kern/abi/time.h>
#include "jiffies.hpp"
#include "lock_order.hpp"
#include "memory.hpp"
#include "scheduler.hpp"

using namespace sim;

struct task_struct {
	Fiber *fiber;
	int (*run)(void *context);
	void *context;
	int result;
	bool stops;
	bool ended;
};

namespace
{

// Returns a random number that is derived from the seed of the run, so that a repeated run gets the
// same numbers.
std::uint64_t next_random()
{
	static std::uint64_t state;

	if (scheduler().draws()++ == 0)
		state = scheduler().strategy().seed() ^ 0x5eed;
	return state = Random(state).next();
}

void sleep(std::uint64_t ns)
{
	check_may_sleep("sleeps");
	const std::uint64_t until = scheduler().now() + ns;
	while (scheduler().now() < until)
		scheduler().block(&scheduler().current(), until);
}

} // namespace

extern "C" {

u64 kern_now_ns(void)
{
	SIM_STEP(nullptr);
	return scheduler().now();
}

u64 kern_jiffies(void)
{
	return scheduler().now() / nanoseconds_of_jiffy;
}

u64 kern_ms_to_jiffies(unsigned int ms)
{
	return ms * nanoseconds_of_ms / nanoseconds_of_jiffy;
}

void kern_sleep_ms(unsigned int ms)
{
	SIM_STEP(nullptr);
	sleep(ms * nanoseconds_of_ms);
}

void kern_sleep_us(unsigned int min, unsigned int)
{
	SIM_STEP(nullptr);
	sleep(std::uint64_t{min} * 1000);
}

void kern_delay_us(unsigned int us)
{
	const std::uint64_t until = scheduler().now() + std::uint64_t{us} * 1000;

	while (scheduler().now() < until)
		scheduler().yield({"kern_delay_us", nullptr, __builtin_return_address(0)});
}

void kern_cond_resched(void)
{
	check_may_sleep("lets others run");
	scheduler().yield({"kern_cond_resched", nullptr, __builtin_return_address(0)});
}

u32 kern_random_u32(void)
{
	return static_cast<u32>(next_random());
}

u64 kern_random_u64(void)
{
	return next_random() << 32 ^ next_random();
}

void kern_random_bytes(void *to, size_t size)
{
	auto *bytes = static_cast<unsigned char *>(to);

	for (size_t i = 0; i < size; i++)
		bytes[i] = static_cast<unsigned char>(next_random());
}

struct task_struct *kern_thread_start(int (*run)(void *context), void *context, const char *name,
				      int *error)
{
	SIM_STEP(nullptr);
	check_may_sleep("starts a thread");
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0))) {
		*error = -ENOMEM;
		return nullptr;
	}
	auto *task = new task_struct{nullptr, run, context, -EINTR, false, false};
	task->fiber = &scheduler().start(Kind::task, name, [task] {
		scheduler().current().thread = task;
		/* A thread that is stopped before it has started never runs. */
		if (!task->stops)
			task->result = task->run(task->context);
		task->ended = true;
		scheduler().wake(task);
	});
	*error = 0;
	SIM_STEP(nullptr);
	return task;
}

int kern_thread_stop(struct task_struct *task)
{
	SIM_STEP(task);
	check_may_sleep("waits for a thread");
	task->stops = true;
	/*
	 * Wake the thread, so that it checks whether it has been stopped. A thread that waits for
	 * another condition continues to wait.
	 */
	if (!task->ended)
		scheduler().wake(*task->fiber);
	while (!task->ended)
		scheduler().block(task);
	const int result = task->result;
	delete task;
	return result;
}

bool kern_thread_should_stop(void)
{
	SIM_STEP(nullptr);
	return static_cast<task_struct *>(scheduler().current().thread)->stops;
}
}
