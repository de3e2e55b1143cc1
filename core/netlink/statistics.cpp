// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Answers requests about the hardware counters of a port.
#include <kern/memory.hpp>
#include <rdma/ib_hw_counters.h>
#include "operations.hpp"

namespace nldev
{

namespace
{

/* Writes a response about a port. put(i) adds the attributes of counter i after its name. */
template<class Put>
void put_counters(const Device &device, u32 port, u16 operation, Message &message,
		  const rdma_hw_counters &counters, Put put)
{
	message.begin(abi::type_of(operation));
	device.name(message);
	message.put(abi::PORT_INDEX, port);
	{
		Nest table(message, abi::STAT_HWCOUNTERS, true);
		for (u32 i = 0; i < counters.count; i++) {
			Nest entry(message, abi::STAT_HWCOUNTER_ENTRY, true);
			message.put(abi::STAT_HWCOUNTER_ENTRY_NAME, counters.names[i]);
			put(i);
		}
	}
	message.end();
}

/* Returns the counters of a port. Errors: EINVAL if it has none. */
kern::Result<const rdma_hw_counters *> counters_of(const Device &device, u32 port)
{
	const rdma_hw_counters *counters = ib_hw_counters(&*device, port);

	if (!counters)
		return kern::Error{-EINVAL};
	return counters;
}

} // namespace

/*
 * Answers a request for the counters of a port. Requests for the counters of QPs or regions
 * (STAT_RES) are refused, because no counters are bound to them.
 */
kern::Result<> get_statistics(const Request &request, Message &message)
{
	const Device device = KERN_TRY(Device::of(request));
	const u32 port = KERN_TRY(device.port(request));
	const rdma_hw_counters *counters = KERN_TRY(counters_of(device, port));

	if (request.has(abi::STAT_RES))
		return kern::Error{-EOPNOTSUPP};
	const auto values = KERN_TRY(kern::make_array<u64>(kern::Gfp::kernel, counters->count));
	KERN_TRY_ERRNO(ib_get_hw_stats(&*device, port, 0, counters->count, values.data()));
	put_counters(device, port, abi::STAT_GET, message, *counters,
		     [&](u32 i) { message.put(abi::STAT_HWCOUNTER_ENTRY_VALUE, values[i]); });
	return {};
}

/* Reports all counters as enabled, because they cannot be disabled. */
kern::Result<> get_statistics_status(const Request &request, Message &message)
{
	const Device device = KERN_TRY(Device::of(request));
	const u32 port = KERN_TRY(device.port(request));

	put_counters(device, port, abi::STAT_GET_STATUS, message,
		     *KERN_TRY(counters_of(device, port)),
		     [&](u32 i) { message.put(abi::STAT_HWCOUNTER_INDEX, i); });
	return {};
}

} // namespace nldev
