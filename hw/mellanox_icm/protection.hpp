// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements protection domains, which are only numbers on mlx4 and mthca cards.
#pragma once
#include <rdma/driver.hpp>
#include "number_allocator.hpp"

namespace mellanox_icm
{

struct Pd {
	using Object = rdma::DriverObject<ib_pd, Pd>;
	Number number;
};

/* Returns the number of a protection domain. A QP without one gets 0, which no domain has. */
inline u32 pd_number(ib_pd *pd)
{
	return pd ? Pd::Object::state(pd).number.value() : 0;
}

} // namespace mellanox_icm
