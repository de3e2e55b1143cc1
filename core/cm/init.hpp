// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Declares the function that returns the communication manager's state for an RDMA device. */
#pragma once

#include "device.hpp"

namespace cm
{

/*
 * Returns nullptr for a device that the CM does not serve. Context: any, for a client of the
 * device.
 */
kern::Ref<Device> device_of(ib_device *ib);
/*
 * Like device_of(), for callers that are not clients and may run in parallel with the removal of
 * the device. Context: process.
 */
kern::Ref<Device> find_device(ib_device &ib);

} // namespace cm
