// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Queries and caches the hardware counters of a port or of the device.
#pragma once
#include <kern/lock.hpp>
#include <kern/memory.hpp>
#include <rdma/ib_hw_counters.h>

namespace verbs
{

/*
 * One sample shared by all readers, because any user may read it and each query is a command of the
 * device. Only one reader at a time queries the device, and only if the sample has expired. If a
 * query fails, the device is not queried again for the same time.
 */
class HwStats
{
public:
	/* Must be called once. @port: 0 for the device. Context: process. Errors: ENOMEM. */
	kern::Result<> start(ib_device &device, u32 port);

	/* Returns nullptr if there are no counters. */
	const rdma_hw_counters *counters() const { return counters_; }
	/*
	 * Reads `count` counters, beginning with `first`. Context: process. Errors: EINVAL, and
	 * those of the driver.
	 */
	kern::Result<> read(u32 first, u32 count, u64 *values) KERN_EXCLUDES(lock_);
	u32 lifespan_ms() const KERN_EXCLUDES(lock_);
	/* Errors: EINVAL if @wanted exceeds the maximum. */
	kern::Result<> set_lifespan_ms(u32 wanted) KERN_EXCLUDES(lock_);

private:
	void refresh() KERN_REQUIRES(lock_);

	ib_device *device_ = nullptr;
	u32 port_ = 0;
	const rdma_hw_counters *counters_ = nullptr;

	/* Held while the device is queried. Lock order: outside of all locks of a driver. */
	mutable kern::Mutex lock_{KERN_LOCK_CLASS("verbs.hw_stats")};
	kern::OwnedArray<u64> values_ KERN_GUARDED_BY(lock_);
	/* The time of the last query and its result; 0 if there was none. */
	u64 read_at_ns_ KERN_GUARDED_BY(lock_) = 0;
	int error_ KERN_GUARDED_BY(lock_) = 0;
	u32 lifespan_ms_ KERN_GUARDED_BY(lock_) = 10;
};

} // namespace verbs
