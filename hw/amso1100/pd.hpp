// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Protection domains: numbers that the driver chooses. The card learns of one when an object is
// created in it.
#pragma once
#include <rdma/driver.hpp>

namespace amso1100
{

struct Pd {
	using Object = rdma::DriverObject<ib_pd, Pd>;
	static Pd &of(ib_pd *pd) { return Object::state(pd); }

	u32 number;
};

} // namespace amso1100
