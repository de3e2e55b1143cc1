// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains the reference measurements in C, with which the C++ wrappers are compared. They call
// Linux's functions directly.
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "bench.h"

static u64 counter;

long bench_c_spin_lock(void)
{
	static DEFINE_SPINLOCK(lock);

	return BENCH({
		spin_lock(&lock);
		counter++;
		spin_unlock(&lock);
	});
}

long bench_c_irq_spin_lock(void)
{
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;

	return BENCH({
		spin_lock_irqsave(&lock, flags);
		counter++;
		spin_unlock_irqrestore(&lock, flags);
	});
}

long bench_c_mutex(void)
{
	static DEFINE_MUTEX(lock);

	return BENCH({
		mutex_lock(&lock);
		counter++;
		mutex_unlock(&lock);
	});
}

struct counted {
	refcount_t references;
};

long bench_c_reference(void)
{
	struct counted *object = kmalloc(sizeof(*object), GFP_KERNEL);
	struct counted *volatile kept;
	long ticks;

	if (!object)
		return -1;
	refcount_set(&object->references, 1);
	ticks = BENCH({
		refcount_inc(&object->references);
		kept = object;
		if (refcount_dec_and_test(&object->references))
			kfree(object);
	});
	kfree(object);
	return ticks;
}

struct shape;
struct shape_operations {
	u64 (*area)(struct shape *shape, u64 scale);
};
struct shape {
	const struct shape_operations *operations;
	u64 side;
};

static noinline u64 square_area(struct shape *shape, u64 scale)
{
	return shape->side * shape->side * scale;
}

long bench_c_indirect_call(void)
{
	static const struct shape_operations operations = {.area = square_area};
	struct shape square = {.operations = &operations, .side = 3};
	struct shape *shape = &square;

	OPTIMIZER_HIDE_VAR(shape);
	return BENCH(counter += shape->operations->area(shape, 2));
}

struct block {
	u64 words[8];
};

long bench_c_allocation(void)
{
	return BENCH({
		struct block *block = kmalloc(sizeof(*block), GFP_KERNEL);

		if (block)
			WRITE_ONCE(block->words[0], 1);
		kfree(block);
	});
}

static noinline int parse(u64 input, u64 *output)
{
	if (input == 0)
		return -EINVAL;
	*output = input * 3;
	return 0;
}

static noinline int parse_and_add(u64 input, u64 *output)
{
	u64 parsed;
	int status = parse(input, &parsed);

	if (status)
		return status;
	*output = parsed + 1;
	return 0;
}

long bench_c_error_return(void)
{
	return BENCH({
		u64 parsed;

		if (parse_and_add(7, &parsed) == 0)
			counter += parsed;
	});
}

long bench_c_register_write(void)
{
	static u32 memory[4];
	void __iomem *base = (void __iomem *)memory;

	OPTIMIZER_HIDE_VAR(base);
	return BENCH(writel(swab32((u32)counter), base + 8));
}

long bench_c_atomic_add(void)
{
	static atomic_t value;

	return BENCH(atomic_fetch_add(3, &value));
}
