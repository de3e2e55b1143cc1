// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "hw_counters.hpp"
#include <kern/time.hpp>
#include "checks.hpp"
#include "device.hpp"
#include "verbs.hpp"

using namespace verbs;

namespace
{

constexpr u64 ns_per_ms = 1'000'000;
constexpr u32 longest_lifespan_ms = 10'000;

/* Returns nullptr if the port or device has no counters. */
HwStats *stats_of(const ib_device &device, u32 port)
{
	kern::OwnedArray<HwStats> &all = device.verbs->hw_stats;

	return port < all.size() && all[port].counters() ? &all[port] : nullptr;
}

} // namespace

kern::Result<> HwStats::start(ib_device &device, u32 port)
{
	kern::Guard guard(lock_);
	const rdma_hw_counters *counters = device.ops.hw_counters(&device, port);

	if (!counters)
		return {};
	values_ = KERN_TRY(kern::make_array<u64>(kern::Gfp::kernel, counters->count));
	device_ = &device;
	port_ = port;
	counters_ = counters;
	return {};
}

void HwStats::refresh()
{
	const u64 now = kern::now_ns();

	if (read_at_ns_ && now - read_at_ns_ < lifespan_ms_ * ns_per_ms)
		return;
	u64 *const values = values_.data();
	error_ = VERBS_CALL(device_, get_hw_stats, device_, port_, values);
	/*
	 * The sample's age is counted from the response, so the time that the device took is not
	 * included.
	 */
	read_at_ns_ = kern::now_ns();
}

kern::Result<> HwStats::read(u32 first, u32 count, u64 *values)
{
	kern::Guard guard(lock_);

	if (first > values_.size() || count > values_.size() - first)
		return kern::Error{-EINVAL};
	refresh();
	KERN_TRY_ERRNO(error_);
	for (u32 i = 0; i < count; i++)
		values[i] = values_[first + i];
	return {};
}

u32 HwStats::lifespan_ms() const
{
	kern::Guard guard(lock_);
	return lifespan_ms_;
}

kern::Result<> HwStats::set_lifespan_ms(u32 wanted)
{
	if (wanted > longest_lifespan_ms)
		return kern::Error{-EINVAL};
	kern::Guard guard(lock_);
	lifespan_ms_ = wanted;
	return {};
}

extern "C" {

const struct rdma_hw_counters *ib_hw_counters(struct ib_device *device, u32 port_num)
{
	const HwStats *stats = stats_of(*device, port_num);

	return stats ? stats->counters() : nullptr;
}

int ib_get_hw_stats(struct ib_device *device, u32 port_num, u32 first, u32 count, u64 *values)
{
	may_sleep(device, "ib_get_hw_stats");
	HwStats *stats = stats_of(*device, port_num);

	return stats ? stats->read(first, count, values).error() : -EOPNOTSUPP;
}

int ib_get_hw_stats_lifespan(struct ib_device *device, u32 port_num)
{
	may_sleep(device, "ib_get_hw_stats_lifespan");
	const HwStats *stats = stats_of(*device, port_num);

	return stats ? static_cast<int>(stats->lifespan_ms()) : -EOPNOTSUPP;
}

int ib_set_hw_stats_lifespan(struct ib_device *device, u32 port_num, u32 lifespan_ms)
{
	may_sleep(device, "ib_set_hw_stats_lifespan");
	HwStats *stats = stats_of(*device, port_num);

	return stats ? stats->set_lifespan_ms(lifespan_ms).error() : -EOPNOTSUPP;
}
}
