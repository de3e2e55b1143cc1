/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Memory that a work request points to, lent to the device. A device without a DMA device reads
 * memory by the CPU's own addresses, and nothing needs mapping. Context: any.
 */
#pragma once

#include <kern/dma.hpp>
#include <rdma/ib_verbs.h>

namespace rdma
{

/* The memory must be contiguous (kern::dma::map_single() says what is). Errors: ENOMEM. */
inline kern::Result<u64> map_single(const ib_device *device, void *memory, size_t size,
				    kern::dma::Direction direction)
{
	if (!device->dma_device)
		return reinterpret_cast<u64>(memory);
	return kern::dma::map_single(device->dma_device, memory, size, direction);
}

inline void unmap_single(const ib_device *device, u64 address, size_t size,
			 kern::dma::Direction direction)
{
	if (device->dma_device)
		kern::dma::unmap_single(device->dma_device, address, size, direction);
}

} // namespace rdma
