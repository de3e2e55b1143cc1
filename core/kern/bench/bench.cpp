// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Measures the cost of the operations of core/kern. The benchmark runs when its module is inserted.
// For each operation it prints a line `figure NAME UNIT OURS REFERENCE`, which scripts/bench reads.
// OURS is the cost of the C++ wrapper, and REFERENCE the cost of the same operation in C.
#include <kern/atomic.hpp>
#include <kern/lock.hpp>
#include <kern/log.hpp>
#include <kern/mmio.hpp>
#include <kern/ref.hpp>
#include "bench.h"

extern "C" int weft_kern_bench_init();
extern "C" void weft_kern_bench_exit();

namespace
{

constinit u64 counter;

/* Hides the origin of a value from the compiler, like OPTIMIZER_HIDE_VAR in C. */
template<class T>
void hide(T *&pointer)
{
	asm volatile("" : "+r"(pointer));
}

template<class Lock>
[[gnu::noinline]] long guard(kern::LockClass &lock_class)
{
	Lock lock(lock_class);

	return BENCH({
		kern::Guard held(lock);
		counter++;
	});
}

[[gnu::noinline]] long locked()
{
	kern::Locked<u64> value(KERN_LOCK_CLASS("bench.locked"), 0u);

	return BENCH(value.with([](u64 &v) { v++; }));
}

struct Counted : kern::RefCounted<Counted> {
};

[[gnu::noinline]] long reference()
{
	auto made = kern::make_ref<Counted>(kern::Gfp::kernel);
	if (!made.ok())
		return -1;
	kern::Ref<Counted> object = made.take();
	Counted *volatile kept;

	return BENCH({
		kern::Ref<Counted> copy = object;
		kept = copy.get();
	});
}

struct Shape {
	virtual u64 area(u64 scale) = 0;

protected:
	~Shape() = default;
};
struct Square final : Shape {
	explicit Square(u64 s) : side(s) {}
	[[gnu::noinline]] u64 area(u64 scale) override { return side * side * scale; }
	u64 side;
};
/* Two shapes are needed: with only one, the compiler would devirtualise the call. */
struct Line final : Shape {
	[[gnu::noinline]] u64 area(u64 scale) override { return scale; }
};

[[gnu::noinline]] long virtual_call(bool line)
{
	Square a_square(3);
	Line a_line;
	Shape *shape = line ? static_cast<Shape *>(&a_line) : &a_square;

	hide(shape);
	return BENCH(counter += shape->area(2));
}

struct Block {
	u64 words[8];
};

[[gnu::noinline]] long allocation()
{
	return BENCH({
		auto block = kern::make<Block>(kern::Gfp::kernel);
		if (block.ok())
			kern::write_once(block.value()->words[0], 1);
	});
}

[[gnu::noinline]] kern::Result<u64> parse(u64 input)
{
	if (input == 0)
		return kern::Error{-EINVAL};
	return input * 3;
}

[[gnu::noinline]] kern::Result<u64> parse_and_add(u64 input)
{
	return KERN_TRY(parse(input)) + 1;
}

[[gnu::noinline]] long result_return()
{
	return BENCH({
		auto parsed = parse_and_add(7);
		if (parsed.ok())
			counter += parsed.value();
	});
}

[[gnu::noinline]] long register_write()
{
	static u32 memory[4];
	u32 *base = memory;

	hide(base);
	auto window = kern::Mmio::over_memory(base, sizeof(memory));
	return BENCH(window.write_be32(8, static_cast<u32>(counter)));
}

[[gnu::noinline]] long atomic_add()
{
	static constinit kern::Atomic<u32> value;

	return BENCH(value.fetch_add(3));
}

void figure(const char *name, long ours, long reference)
{
	kern_info("figure kern.%s instructions %ld %ld\n", name, ours, reference);
}

} // namespace

int weft_kern_bench_init()
{
	figure("guard", guard<kern::SpinLock>(KERN_LOCK_CLASS("bench.spin")), bench_c_spin_lock());
	figure("irq-guard", guard<kern::IrqSpinLock>(KERN_LOCK_CLASS("bench.irq")),
	       bench_c_irq_spin_lock());
	figure("mutex-guard", guard<kern::Mutex>(KERN_LOCK_CLASS("bench.mutex")), bench_c_mutex());
	figure("locked", locked(), bench_c_spin_lock());
	figure("ref-copy", reference(), bench_c_reference());
	figure("virtual-call", virtual_call(kern::read_once(counter) == 0),
	       bench_c_indirect_call());
	figure("new-delete", allocation(), bench_c_allocation());
	figure("result-return", result_return(), bench_c_error_return());
	figure("register-write", register_write(), bench_c_register_write());
	figure("atomic-add", atomic_add(), bench_c_atomic_add());
	return 0;
}

void weft_kern_bench_exit() {}
