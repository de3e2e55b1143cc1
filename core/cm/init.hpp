// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Finds the communication manager's state of a device. */
#pragma once

#include "device.hpp"

namespace cm
{

/* nullptr for a device that the CM does not serve. Context: any, for a client of it. */
kern::Ref<Device> device_of(ib_device *ib);
/*
 * Does the same for callers that are not clients, and may race with the removal of the device.
 * Context: process.
 */
kern::Ref<Device> find_device(ib_device &ib);

} // namespace cm
