// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Protection domains and XRC domains: numbers, nothing more.
#pragma once
#include <rdma/driver.hpp>
#include "number_allocator.hpp"

namespace connectx {

struct Pd {
	using Object = rdma::DriverObject<ib_pd, Pd>;
	Number number;
};

struct Xrcd {
	using Object = rdma::DriverObject<ib_xrcd, Xrcd>;
	Number number;
};

/* 0, which no domain has, for a QP without one. */
inline u32 pd_number(ib_pd *pd)
{
	return pd ? Pd::Object::state(pd).number.value() : 0;
}
inline u32 xrcd_number(ib_xrcd *xrcd)
{
	return xrcd ? Xrcd::Object::state(xrcd).number.value() : 0;
}

} // namespace connectx
