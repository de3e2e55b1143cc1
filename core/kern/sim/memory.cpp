// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the allocation of memory and pages (include/kern/abi/memory.h), and the delete
// operators that virtual destructors call.
#include "memory.hpp"
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>
#include <kern/abi/explore.h>
#include <kern/abi/memory.h>
#include <kern/abi/netdev.h>
#include "calls.hpp"
#include "failure.hpp"
#include "lock_order.hpp"
#include "scheduler.hpp"

struct page {
	unsigned int references;
	unsigned int order;
	void *memory;
};

namespace sim::memory
{

namespace
{

/* An allocator for the table of blocks. The table must not use the operators that access it. */
template<class T>
struct Malloc {
	using value_type = T;
	Malloc() = default;
	template<class U>
	Malloc(const Malloc<U> &)
	{
	}
	T *allocate(std::size_t count) { return static_cast<T *>(std::malloc(count * sizeof(T))); }
	void deallocate(T *memory, std::size_t) { std::free(memory); }
	bool operator==(const Malloc &) const { return true; }
};

enum class Sort { object, large, pages };
struct Block {
	Sort sort;
	std::size_t size;
	const void *caller;
	unsigned int fiber;
};
using Blocks = std::unordered_map<const void *, Block, std::hash<const void *>, std::equal_to<>,
				  Malloc<std::pair<const void *const, Block>>>;

Blocks &blocks()
{
	/*
	 * The table is never destroyed, because static objects of the program are freed after that
	 * would happen.
	 */
	alignas(Blocks) static unsigned char storage[sizeof(Blocks)];
	static Blocks *const instance = new (storage) Blocks;
	return *instance;
}

// A test makes the nth allocation of its task fail, or the nth of all work items.
const Fiber *failing;
unsigned int until_failure, until_work_failure;
bool no_pages;
// The callers whose allocations may fail by choice of the strategy (kern_explore_failures()), and
// the task if it is KERN_EXPLORE_THIS_TASK.
kern_explore_failing failure_scope;
const Fiber *failure_task;
std::vector<const void *> failed_callers;

bool handles_failures(const Fiber &self)
{
	switch (failure_scope) {
	case KERN_EXPLORE_NONE:
		return false;
	case KERN_EXPLORE_THIS_TASK:
		return &self == failure_task;
	case KERN_EXPLORE_EVERYBODY:
		return true;
	}
	return false;
}

void *allocate(std::size_t size, unsigned int flags, Sort sort, const void *caller)
{
	if (fails(flags, caller))
		return nullptr;
	/*
	 * Memory of a power-of-two size is aligned to the size, as in the kernel. Memory of size 0
	 * has an address, too.
	 */
	void *memory = nullptr;
	const bool power_of_two = size && (size & (size - 1)) == 0;
	if (posix_memalign(&memory, power_of_two && size > 16 ? (size < 4096 ? size : 4096) : 16,
			   size ? size : 1))
		return nullptr;
	std::memset(memory, flags & KERN_GFP_ZERO ? 0 : 0xa5, size);
	blocks()[memory] = {sort, size, caller,
			    scheduler().inside() ? scheduler().current().id : 0};
	return memory;
}

/* Frees a block. No fiber may be about to use it. */
void release(const void *memory, Sort sort)
{
	const auto found = blocks().find(memory);

	if (found == blocks().end()) {
		/*
		 * Unknown memory is passed to free(), because the sanitizer reports it in more
		 * detail.
		 */
		std::free(const_cast<void *>(memory));
		return;
	}
	const Block block = found->second;
	if (block.sort != sort)
		fail("memory is freed with the wrong function",
		     "allocated at " + where(block.caller));
	if (const std::string active = calls::active_within(memory, block.size); !active.empty())
		fail("memory is freed while a call in it is pending or running",
		     active + "; the memory is of " + where(block.caller));
	if (const std::string held = lock_order::held_within(memory, block.size); !held.empty())
		fail("memory is freed while a lock in it is held",
		     held + "; the memory is of " + where(block.caller));
	blocks().erase(found);
	std::free(const_cast<void *>(memory));
}

std::size_t product(std::size_t count, std::size_t size)
{
	std::size_t result;

	return __builtin_mul_overflow(count, size, &result)
		       ? std::numeric_limits<std::size_t>::max()
		       : result;
}

} // namespace

bool fails(unsigned int flags, const void *caller)
{
	if (!scheduler().inside())
		return false;
	Fiber &self = scheduler().current();
	scheduler().step({"an allocation", nullptr, caller});
	if (flags & KERN_GFP_DIRECT_RECLAIM)
		check_may_sleep("allocates with Gfp::kernel");
	self.allocations++;
	if (self.works && until_work_failure && --until_work_failure == 0)
		return true;
	if (&self == failing && until_failure && --until_failure == 0)
		return true;
	if (!handles_failures(self) || !scheduler().strategy().fails_allocation(self))
		return false;
	failed_callers.push_back(caller);
	return true;
}

const std::vector<const void *> &failed_by_choice()
{
	return failed_callers;
}

std::string left()
{
	std::string text;
	unsigned int shown = 0;

	for (const auto &[memory, block] : blocks()) {
		if (++shown > 8)
			return text + "  … and more: " + std::to_string(blocks().size()) +
			       " in all\n";
		text += "  " + std::to_string(block.size) + " bytes of " + where(block.caller) +
			"\n";
	}
	return text;
}

void reset()
{
	blocks().clear();
	failing = failure_task = nullptr;
	failure_scope = KERN_EXPLORE_NONE;
	until_failure = until_work_failure = 0;
	failed_callers.clear();
	no_pages = false;
}

} // namespace sim::memory

using namespace sim;
using memory::Sort;

void operator delete(void *object) noexcept
{
	if (object)
		memory::release(object, Sort::object);
}
void operator delete(void *object, std::size_t) noexcept
{
	operator delete(object);
}
void *operator new(std::size_t size)
{
	void *object = std::malloc(size ? size : 1);

	if (!object)
		std::abort();
	return object;
}

extern "C" {

void *kern_alloc(size_t size, unsigned int flags)
{
	return memory::allocate(size, flags, Sort::object, __builtin_return_address(0));
}

void *kern_alloc_array(size_t count, size_t size, unsigned int flags)
{
	const std::size_t bytes = memory::product(count, size);

	return bytes > PTRDIFF_MAX
		       ? nullptr
		       : memory::allocate(bytes, flags, Sort::object, __builtin_return_address(0));
}

void kern_free(const void *object)
{
	SIM_STEP(object);
	if (object)
		memory::release(object, Sort::object);
}

void *kern_alloc_large(size_t count, size_t size, unsigned int flags)
{
	const std::size_t bytes = memory::product(count, size);

	return bytes > PTRDIFF_MAX
		       ? nullptr
		       : memory::allocate(bytes, flags, Sort::large, __builtin_return_address(0));
}

/* Also frees memory that was allocated without the fallback to vmalloc. */
void kern_free_large(const void *object)
{
	SIM_STEP(object);
	if (!object)
		return;
	const auto found = memory::blocks().find(object);
	memory::release(object,
			found != memory::blocks().end() && found->second.sort == Sort::object
				? Sort::object
				: Sort::large);
}

struct page *kern_alloc_pages(unsigned int order, int, unsigned int flags)
{
	void *contents = memory::allocate(size_t{4096} << order, flags, Sort::pages,
					  __builtin_return_address(0));

	if (!contents)
		return nullptr;
	return new page{1, order, contents};
}

void kern_get_page(struct page *page)
{
	page->references++;
}

void kern_put_page(struct page *page)
{
	SIM_STEP(page);
	if (--page->references)
		return;
	memory::release(page->memory, Sort::pages);
	delete page;
}

void kern_free_pages(struct page *page, unsigned int)
{
	kern_put_page(page);
}

void *kern_page_address(struct page *page)
{
	return page->memory;
}

struct page *kern_page_alloc(void)
{
	return memory::no_pages ? nullptr : kern_alloc_pages(0, 0, KERN_GFP_ATOMIC);
}

void kern_fail_pages(bool fail)
{
	memory::no_pages = fail;
}

void kern_page_get(struct page *page)
{
	kern_get_page(page);
}

void kern_page_put(struct page *page)
{
	kern_put_page(page);
}

int kern_page_references(const struct page *page)
{
	SIM_STEP(page);
	return static_cast<int>(page->references);
}

bool kern_page_reusable(const struct page *)
{
	return true;
}

const void *kern_page_bytes(const struct page *page)
{
	return page->memory;
}

int kern_node_id(void)
{
	return 0;
}

u64 kern_ram_pages(void)
{
	return u64{1} << 12;
}

void kern_explore_failures(enum kern_explore_failing who)
{
	memory::failure_scope = who;
	memory::failure_task = &scheduler().current();
}

void kern_fail_allocation(unsigned int nth)
{
	memory::until_failure = nth;
	memory::failing = nth ? &scheduler().current() : nullptr;
}

bool kern_allocation_failed(void)
{
	return memory::failing == &scheduler().current() && memory::until_failure == 0;
}

// The simulation never reclaims memory.
unsigned int kern_noio_enter()
{
	return 0;
}

void kern_noio_leave(unsigned int) {}

unsigned int kern_fail_work_allocation(unsigned int nth)
{
	return std::exchange(memory::until_work_failure, nth);
}
}
