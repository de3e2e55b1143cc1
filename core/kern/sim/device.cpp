// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the simulated DMA API of include/kern/abi/dma.h, and the test devices of
// include/kern/abi/kunit.h.
#include "device.hpp"
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>
#include <kern/abi/dma.h>
#include <kern/abi/kunit.h>
#include <kern/abi/memory.h>
#include "failure.hpp"
#include "memory.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

using namespace sim;

namespace
{

std::set<device *> devices;

/*
 * Copies the part whose ownership is transferred: from the memory into the arena, or back (@back).
 */
void copy(device *device, std::uint64_t address, std::size_t size, bool back)
{
	const auto piece = device->arena->piece_at(address);
	const auto found = device->copies.find(reinterpret_cast<std::uint64_t>(piece.data()));

	if (found == device->copies.end())
		fail("DMA sync of memory that is not mapped",
		     describe(scheduler().current().place));
	const device::Copy &its = found->second;
	const std::size_t offset = address - found->first;
	if (offset + size > its.size)
		fail("DMA sync beyond the mapped memory", describe(scheduler().current().place));
	if (its.direction == (back ? KERN_DMA_TO_DEVICE : KERN_DMA_FROM_DEVICE))
		return;
	std::byte *to = piece.data() + offset, *from = its.original + offset;
	if (back)
		std::swap(to, from);
	std::memcpy(to, from, size);
}

int map(device *device, std::byte *memory, std::size_t size, kern_dma_direction direction,
	const void *caller, u64 *mapped)
{
	if (memory::fails(KERN_GFP_ATOMIC, caller))
		return -ENOMEM;
	*mapped = reinterpret_cast<u64>(memory);
	if (device->arena) {
		std::byte *piece = device->arena->take(size);
		if (!piece)
			return -ENOMEM;
		*mapped = reinterpret_cast<u64>(piece);
		device->copies[*mapped] = {memory, size, direction};
		copy(device, *mapped, size, false);
	}
	device->mapped.emplace(*mapped, caller);
	return 0;
}

void unmap(device *device, std::uint64_t address)
{
	const auto found = device->mapped.find(address);

	if (found == device->mapped.end())
		fail("DMA unmap of memory that is not mapped",
		     describe(scheduler().current().place));
	device->mapped.erase(found);
	if (!device->arena)
		return;
	copy(device, address, device->copies[address].size, true);
	device->copies.erase(address);
	device->arena->release(reinterpret_cast<std::byte *>(address));
}

} // namespace

struct dma_pool {
	device *of;
	std::size_t size, pieces;
};

namespace sim
{

void reset_devices()
{
	for (device *device : devices)
		delete device;
	devices.clear();
}

std::string left_mappings()
{
	for (const device *device : devices)
		return device->name + (device->mapped.empty()
					       ? ""
					       : ", with memory mapped at " +
							 where(device->mapped.begin()->second));
	return {};
}

} // namespace sim

extern "C" {

struct device *kern_kunit_device_create(const char *name)
{
	auto *made = new device{.name = name};

	devices.insert(made);
	return made;
}

void kern_kunit_device_destroy(struct device *device)
{
	SIM_STEP(device);
	if (!device->mapped.empty())
		fail("a device is removed while memory is mapped for it",
		     where(device->mapped.begin()->second));
	devices.erase(device);
	delete device;
}

void *kern_kunit_dma_memory(struct device *, u64 address)
{
	return reinterpret_cast<void *>(address);
}

void *kern_dma_alloc_coherent(struct device *device, size_t size, u64 *address, unsigned int flags)
{
	if (!device->arena) {
		void *memory = kern_alloc_large(1, size, flags | KERN_GFP_ZERO);
		*address = reinterpret_cast<u64>(memory);
		return memory;
	}
	if (memory::fails(flags, __builtin_return_address(0)))
		return nullptr;
	std::byte *piece = device->arena->take(size);
	*address = reinterpret_cast<u64>(piece);
	if (piece)
		device->mapped.emplace(*address, __builtin_return_address(0));
	return piece;
}

void kern_dma_free_coherent(struct device *device, size_t, void *memory, u64 address)
{
	if (!device->arena) {
		kern_free_large(memory);
		return;
	}
	SIM_STEP(memory);
	if (device->mapped.erase(address) != 1)
		fail("coherent memory is freed that is not allocated",
		     describe(scheduler().current().place));
	device->arena->release(static_cast<std::byte *>(memory));
}

struct dma_pool *kern_dma_pool_create(const char *, struct device *device, size_t size, size_t)
{
	if (memory::fails(KERN_GFP_KERNEL, __builtin_return_address(0)))
		return nullptr;
	return new dma_pool{device, size, 0};
}

void kern_dma_pool_destroy(struct dma_pool *pool)
{
	SIM_STEP(pool);
	if (pool->pieces)
		fail("a DMA pool is destroyed while pieces of it are in use", pool->of->name);
	delete pool;
}

void *kern_dma_pool_alloc(struct dma_pool *pool, unsigned int flags, u64 *address)
{
	void *piece = kern_dma_alloc_coherent(pool->of, pool->size, address, flags);

	pool->pieces += piece != nullptr;
	return piece;
}

void kern_dma_pool_free(struct dma_pool *pool, void *memory, u64 address)
{
	pool->pieces--;
	kern_dma_free_coherent(pool->of, pool->size, memory, address);
}

int kern_dma_map_single(struct device *device, void *memory, size_t size,
			enum kern_dma_direction direction, u64 *address)
{
	return map(device, static_cast<std::byte *>(memory), size, direction,
		   __builtin_return_address(0), address);
}

int kern_dma_map_page(struct device *device, struct page *page, size_t offset, size_t size,
		      enum kern_dma_direction direction, u64 *address)
{
	return map(device, static_cast<std::byte *>(kern_page_address(page)) + offset, size,
		   direction, __builtin_return_address(0), address);
}

void kern_dma_unmap_single(struct device *device, u64 address, size_t, enum kern_dma_direction)
{
	SIM_STEP(device);
	unmap(device, address);
}

void kern_dma_unmap_page(struct device *device, u64 address, size_t, enum kern_dma_direction)
{
	SIM_STEP(device);
	unmap(device, address);
}

void kern_dma_sync_for_cpu(struct device *device, u64 address, size_t size, enum kern_dma_direction)
{
	SIM_STEP(device);
	if (device->arena)
		copy(device, address, size, true);
}

void kern_dma_sync_for_device(struct device *device, u64 address, size_t size,
			      enum kern_dma_direction)
{
	SIM_STEP(device);
	if (device->arena)
		copy(device, address, size, false);
}
}
