// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The RNIC's device as registered with the midlayer.
#pragma once
#include <rdma/driver.hpp>
#include "rnic.hpp"

namespace amso1100
{

/* Allocated by the midlayer, which wants its own structure first. */
struct IbDevice {
	ib_device ib;
	Rnic *rnic;

	/*
	 * Registers; clients may use it before this returns. Errors: ENOMEM, the midlayer's. May
	 * sleep.
	 */
	static kern::Result<IbDevice *> create(Rnic &rnic);
	/* Unregisters, and frees it. May sleep. */
	static void destroy(IbDevice *device);

	static Rnic &rnic_of(const ib_device *device)
	{
		return *rdma::device_of<IbDevice>(const_cast<ib_device *>(device))->rnic;
	}
};

} // namespace amso1100
