/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Maps memory for work requests. A device without a DMA device uses the CPU's addresses, so nothing
 * is mapped.
 */
#pragma once

#include <kern/dma.hpp>
#include <rdma/ib_verbs.h>

namespace rdma
{

/*
 * Maps `size` bytes for the device. The memory must be contiguous, as kern::dma::map_single()
 * defines it. The caller unmaps it with unmap_single(). Context: any. Errors: ENOMEM if there is no
 * address space for the device.
 */
inline kern::Result<u64> map_single(const ib_device *device, void *memory, size_t size,
				    kern::dma::Direction direction)
{
	if (!device->dma_device)
		return reinterpret_cast<u64>(memory);
	return kern::dma::map_single(device->dma_device, memory, size, direction);
}

/* Undoes map_single(), with the same size and direction. Context: any. */
inline void unmap_single(const ib_device *device, u64 address, size_t size,
			 kern::dma::Direction direction)
{
	if (device->dma_device)
		kern::dma::unmap_single(device->dma_device, address, size, direction);
}

} // namespace rdma
