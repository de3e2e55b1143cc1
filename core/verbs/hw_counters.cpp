// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include <rdma/ib_hw_counters.h>
#include "checks.hpp"
#include "verbs.hpp"

using namespace verbs;

extern "C" {

const struct rdma_hw_counters *ib_hw_counters(struct ib_device *device, u32 port_num)
{
	if (!device->ops.hw_counters || !device->ops.get_hw_stats ||
	    (port_num && !rdma_is_port_valid(device, port_num)))
		return nullptr;
	return device->ops.hw_counters(device, port_num);
}

int ib_get_hw_stats(struct ib_device *device, u32 port_num, u64 *values)
{
	may_sleep(device, "ib_get_hw_stats");
	if (!ib_hw_counters(device, port_num))
		return -EOPNOTSUPP;
	return device->ops.get_hw_stats(device, port_num, values);
}
}
