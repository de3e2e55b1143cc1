// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The card as the midlayer sees it.
#pragma once
#include <kern/result.hpp>
#include <rdma/driver.hpp>
#include "hca.hpp"

namespace infinihost {

/* Allocated by the midlayer, which wants its own structure first. */
struct IbDevice {
	ib_device ib;
	Hca *hca;
	bool registered;

	/* May sleep. Errors: ENOMEM, those of commands. */
	static kern::Result<IbDevice *> create(Hca &hca);
	static void destroy(IbDevice *device) { rdma::dealloc_device(device); }

	/* Registers; clients may use it before this returns. */
	kern::Result<> start();
	/* Unregisters; nobody uses it after. */
	void stop();
	/* Tells everybody that the card has failed. Task. */
	void tell_fatal();
	const char *name() const { return ib.name; }

	static IbDevice &of(ib_device *device) { return *rdma::device_of<IbDevice>(device); }
};

} // namespace infinihost
