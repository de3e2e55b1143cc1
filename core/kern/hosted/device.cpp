// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// include/kern/abi/dma.h, and the devices of include/kern/abi/kunit.h.
#include "device.hpp"
#include <cerrno>
#include <set>
#include <kern/abi/dma.h>
#include <kern/abi/kunit.h>
#include <kern/abi/memory.h>
#include "failure.hpp"
#include "memory.hpp"
#include "reset.hpp"
#include "scheduler.hpp"

using namespace hosted;

namespace
{

std::set<device *> devices;

int map(device *device, std::uint64_t address, const void *caller, u64 *mapped)
{
	if (memory::fails(KERN_GFP_ATOMIC, caller))
		return -ENOMEM;
	device->mapped.emplace(address, caller);
	*mapped = address;
	return 0;
}

void unmap(device *device, std::uint64_t address)
{
	const auto found = device->mapped.find(address);

	if (found == device->mapped.end())
		fail("what is not mapped is unmapped", describe(scheduler().current().place));
	device->mapped.erase(found);
}

} // namespace

namespace hosted
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

} // namespace hosted

extern "C" {

struct device *kern_kunit_device_create(const char *name)
{
	auto *made = new device{name, {}};

	devices.insert(made);
	return made;
}

void kern_kunit_device_destroy(struct device *device)
{
	HOSTED_STEP(device);
	if (!device->mapped.empty())
		fail("memory is mapped for a device that goes",
		     where(device->mapped.begin()->second));
	devices.erase(device);
	delete device;
}

void *kern_kunit_dma_memory(struct device *, u64 address)
{
	return reinterpret_cast<void *>(address);
}

void *kern_dma_alloc_coherent(struct device *, size_t size, u64 *address, unsigned int flags)
{
	void *memory = kern_alloc_large(1, size, flags | KERN_GFP_ZERO);

	*address = reinterpret_cast<u64>(memory);
	return memory;
}

void kern_dma_free_coherent(struct device *, size_t, void *memory, u64)
{
	kern_free_large(memory);
}

int kern_dma_map_single(struct device *device, void *memory, size_t, enum kern_dma_direction,
			u64 *address)
{
	return map(device, reinterpret_cast<std::uint64_t>(memory), __builtin_return_address(0),
		   address);
}

int kern_dma_map_page(struct device *device, struct page *page, size_t offset, size_t,
		      enum kern_dma_direction, u64 *address)
{
	return map(device, reinterpret_cast<std::uint64_t>(kern_page_address(page)) + offset,
		   __builtin_return_address(0), address);
}

void kern_dma_unmap_single(struct device *device, u64 address, size_t, enum kern_dma_direction)
{
	HOSTED_STEP(device);
	unmap(device, address);
}

void kern_dma_unmap_page(struct device *device, u64 address, size_t, enum kern_dma_direction)
{
	HOSTED_STEP(device);
	unmap(device, address);
}

void kern_dma_sync_for_cpu(struct device *device, u64, size_t, enum kern_dma_direction)
{
	HOSTED_STEP(device);
}

void kern_dma_sync_for_device(struct device *device, u64, size_t, enum kern_dma_direction)
{
	HOSTED_STEP(device);
}
}
