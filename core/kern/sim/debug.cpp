// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the warnings and context checks of include/kern/abi/debug.h, and the two functions
// that instrumented code calls, so that the scheduler can switch fibers there: before each atomic
// access (instrument.h), and in each basic block (-fsanitize-coverage=trace-pc).
#include <kern/abi/debug.h>
#include "failure.hpp"
#include "lock_order.hpp"
#include "scheduler.hpp"

using namespace sim;

// The number of CPUs to which kern_cpu() assigns fibers. Fibers run as if each had its own CPU, but
// arrays with one entry per CPU have a limited size.
constexpr unsigned int cpus = 4;

extern "C" {

void sim_access(const volatile void *address);
void sim_access(const volatile void *address)
{
	if (scheduler().inside())
		scheduler().step({"an atomic access", address, __builtin_return_address(0)});
}

/*
 * A step between accesses that are not atomic. With -fsanitize-coverage=trace-pc, the compiler
 * calls this function in each basic block.
 */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
	if (scheduler().inside())
		scheduler().step({"a branch", nullptr, __builtin_return_address(0)});
}

void kern_warn_at(const char *file, int line, const char *what)
{
	fail(what, std::string(file) + ":" + std::to_string(line) +
			   (scheduler().inside() ? ", " + scheduler().current().name : ""));
}

void kern_bug_at(const char *file, int line, const char *what)
{
	fail(what, std::string(file) + ":" + std::to_string(line));
}

void kern_might_sleep(const char *file, int line)
{
	check_may_sleep("may sleep at " + std::string(file) + ":" + std::to_string(line));
}

void kern_non_block_start(void)
{
	if (scheduler().current().kind == Kind::task)
		scheduler().current().non_block++;
}

void kern_non_block_end(void)
{
	if (scheduler().current().kind == Kind::task)
		scheduler().current().non_block--;
}

bool kern_in_hard_irq(void)
{
	return scheduler().current().kind == Kind::hard_interrupt;
}

bool kern_in_soft_irq(void)
{
	return scheduler().current().kind == Kind::soft_interrupt || scheduler().current().bh_off;
}

bool kern_in_atomic(void)
{
	const Fiber &self = scheduler().current();

	return self.kind != Kind::task || self.preempt_off || self.bh_off || self.irqs_off;
}

bool kern_irqs_disabled(void)
{
	return scheduler().current().irqs_off != 0;
}

bool kern_may_sleep(void)
{
	return scheduler().current().may_sleep();
}

unsigned long kern_context(void)
{
	return (scheduler().current().id + 1ul) << 2 |
	       static_cast<unsigned long>(scheduler().current().kind);
}

unsigned int kern_cpu(void)
{
	return scheduler().current().id % cpus;
}

unsigned int kern_cpu_count(void)
{
	return cpus;
}
}
