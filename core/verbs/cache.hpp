// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Updates and frees the cache of a device's ports (rdma/ib_cache.h). */
#pragma once
#include <kern/result.hpp>
#include "device.hpp"

namespace verbs
{

/*
 * Reads a port and its tables, and replaces the cached values, atomically for readers. Context:
 * process.
 */
kern::Result<> refresh_port(ib_device &device, ib_device_verbs &verbs, u32 port_num);

/* Frees the cache of a device that has no readers any more. */
void free_cache(ib_device_verbs &verbs);

} // namespace verbs
