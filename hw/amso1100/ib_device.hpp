// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the RNIC's device as it is registered with the midlayer.
#pragma once
#include <rdma/driver.hpp>
#include "rnic.hpp"

namespace amso1100
{

/* Allocated by the midlayer, which requires ib_device as its first member. */
struct IbDevice {
	ib_device ib;
	Rnic *rnic;

	/*
	 * Registers the device. Clients may use it before this returns. Errors: ENOMEM, those of
	 * the midlayer. May sleep.
	 */
	static kern::Result<IbDevice *> create(Rnic &rnic);
	/* Unregisters and frees the device. May sleep. */
	static void destroy(IbDevice *device);

	static Rnic &rnic_of(const ib_device *device)
	{
		return *rdma::device_of<IbDevice>(const_cast<ib_device *>(device))->rnic;
	}
};

} // namespace amso1100
