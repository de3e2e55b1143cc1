// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements protection domains, which are numbers that the driver assigns. They are passed to the
// card when an object is created in the domain.
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
