// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fiber.hpp"
#include <cstdlib>
#include <new>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include "scheduler.hpp"

#if !defined(__x86_64__)
#error "switching the stacks of fibers is not implemented for this architecture"
#endif

namespace sim
{

namespace
{

// Frames of sanitized code are larger than those of a kernel, whose stack has 16 KiB.
constexpr std::size_t stack_size = 256 * 1024;

Fiber *resumed_from;
Fiber *resumed;

} // namespace

/*
 * Saves the registers that a function call preserves on the stack, stores the stack pointer in
 * *from, and switches to the other stack.
 */
extern "C" void sim_switch(void **from, void *to);
asm(R"(
	.text
	.type sim_switch, @function
sim_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size sim_switch, . - sim_switch
)");

Fiber::Fiber() : size_(stack_size)
{
	void *memory = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		std::abort();
	stack_ = static_cast<std::byte *>(memory);
	bottom_ = stack_;
	/* The lowest page is not accessible, so that a stack overflow is a fault. */
	mprotect(stack_, 4096, PROT_NONE);
}

Fiber::Fiber(std::nullptr_t) : name("the scheduler") {}

Fiber::~Fiber()
{
	if (stack_)
		munmap(stack_, stack_size);
}

Fiber &Fiber::root()
{
	static Fiber fiber(nullptr);
	return fiber;
}

void Fiber::prepare(unsigned int number, Kind of_kind, std::string its_name,
		    std::function<void()> body)
{
	/* The previous body may have ended without returning from all of its frames. */
	__asan_unpoison_memory_region(stack_, stack_size);
	id = number;
	kind = of_kind;
	state = State::runnable;
	name = std::move(its_name);
	preempt_off = bh_off = rcu_readers = non_block = 0;
	irqs_off = of_kind == Kind::hard_interrupt;
	section++;
	held.clear();
	place = {};
	steps = allocations = 0;
	waits_for = nullptr;
	deadline = never;
	wait_entry = thread = nullptr;
	works = false;
	begun = true;
	body_ = std::move(body);
	fake_stack_ = nullptr;
	auto *top = reinterpret_cast<void **>(stack_ + stack_size);
	*--top = nullptr; // the return address of enter(), which aligns the stack as after a call
	*--top = reinterpret_cast<void *>(&Fiber::enter);
	for (int registers = 0; registers < 6; registers++)
		*--top = nullptr;
	saved_ = top;
}

void Fiber::resume(Fiber &from)
{
	resumed_from = &from;
	resumed = this;
	__sanitizer_start_switch_fiber(
		from.state == State::finished && from.stack_ ? nullptr : &from.fake_stack_, bottom_,
		size_);
	sim_switch(&from.saved_, saved_);
	__sanitizer_finish_switch_fiber(from.fake_stack_, &resumed_from->bottom_,
					&resumed_from->size_);
}

void Fiber::enter()
{
	__sanitizer_finish_switch_fiber(nullptr, &resumed_from->bottom_, &resumed_from->size_);
	resumed->body_();
	scheduler().finish();
}

} // namespace sim
