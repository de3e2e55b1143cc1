// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the XArrays and index allocators of include/kern/abi/xarray.h with containers of the
// standard library.
#include <cerrno>
#include <map>
#include <set>
#include <utility>
#include <kern/abi/xarray.h>
#include "failure.hpp"
#include "memory.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

using Map = std::map<unsigned long, void *>;
using Numbers = std::set<unsigned int>;

template<class T, class Native>
T *&of(Native *native)
{
	static_assert(sizeof(Native) >= sizeof(T *));
	return *reinterpret_cast<T **>(native);
}

/*
 * The kernel's function leaves interrupts enabled, so it must not be called with interrupts
 * disabled.
 */
void check_interrupts_on()
{
	const Fiber &self = scheduler().current();

	if (self.irqs_off)
		fail("an XArray is changed with interrupts disabled", describe(self.place));
}

/* Finds the first free index from min to max. Returns false if there is none. */
bool find_free(const Map &map, unsigned long min, unsigned long max, u32 &index)
{
	unsigned long free = min;

	for (auto it = map.lower_bound(min); it != map.end() && it->first == free; ++it)
		free++;
	index = static_cast<u32>(free);
	return free <= max;
}

} // namespace

extern "C" {

void kern_xa_init(struct kern_xarray *array)
{
	of<Map>(array) = new Map;
}

void kern_xa_destroy(struct kern_xarray *array)
{
	delete std::exchange(of<Map>(array), nullptr);
}

bool kern_xa_empty(struct kern_xarray *array)
{
	SIM_STEP(array);
	return of<Map>(array)->empty();
}

void *kern_xa_load(struct kern_xarray *array, unsigned long index)
{
	SIM_STEP(array);
	const Map &map = *of<Map>(array);
	const auto found = map.find(index);
	return found == map.end() ? nullptr : found->second;
}

int kern_xa_insert(struct kern_xarray *array, unsigned long index, void *entry, unsigned int flags)
{
	check_interrupts_on();
	if (memory::fails(flags, __builtin_return_address(0)))
		return -ENOMEM;
	return of<Map>(array)->try_emplace(index, entry).second ? 0 : -EBUSY;
}

int kern_xa_alloc(struct kern_xarray *array, u32 *index, void *entry, u32 min, u32 max,
		  unsigned int flags)
{
	check_interrupts_on();
	if (memory::fails(flags, __builtin_return_address(0)))
		return -ENOMEM;
	Map &map = *of<Map>(array);
	if (!find_free(map, min, max, *index))
		return -EBUSY;
	map[*index] = entry;
	return 0;
}

int kern_xa_alloc_cyclic(struct kern_xarray *array, u32 *index, void *entry, u32 min, u32 max,
			 u32 *next, unsigned int flags)
{
	check_interrupts_on();
	if (memory::fails(flags, __builtin_return_address(0)))
		return -ENOMEM;
	Map &map = *of<Map>(array);
	if (!find_free(map, *next > min ? *next : min, max, *index) &&
	    !find_free(map, min, max, *index))
		return -EBUSY;
	map[*index] = entry;
	*next = *index + 1;
	return 0;
}

void *kern_xa_erase(struct kern_xarray *array, unsigned long index)
{
	SIM_STEP(array);
	Map &map = *of<Map>(array);
	const auto found = map.find(index);
	if (found == map.end())
		return nullptr;
	void *entry = found->second;
	map.erase(found);
	return entry;
}

void *kern_xa_find(struct kern_xarray *array, unsigned long *index)
{
	SIM_STEP(array);
	const Map &map = *of<Map>(array);
	const auto found = map.lower_bound(*index);
	if (found == map.end())
		return nullptr;
	*index = found->first;
	return found->second;
}

void kern_ida_init(struct kern_ida *ida)
{
	of<Numbers>(ida) = new Numbers;
}

void kern_ida_destroy(struct kern_ida *ida)
{
	delete std::exchange(of<Numbers>(ida), nullptr);
}

int kern_ida_alloc(struct kern_ida *ida, unsigned int min, unsigned int max, unsigned int flags)
{
	if (memory::fails(flags, __builtin_return_address(0)))
		return -ENOMEM;
	Numbers &numbers = *of<Numbers>(ida);
	unsigned int id = min;
	for (auto it = numbers.lower_bound(min); it != numbers.end() && *it == id; ++it)
		id++;
	if (id > max)
		return -ENOSPC;
	numbers.insert(id);
	return static_cast<int>(id);
}

void kern_ida_free(struct kern_ida *ida, unsigned int id)
{
	SIM_STEP(ida);
	of<Numbers>(ida)->erase(id);
}

bool kern_ida_empty(struct kern_ida *ida)
{
	SIM_STEP(ida);
	return of<Numbers>(ida)->empty();
}
}
