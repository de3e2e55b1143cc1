// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Address handles: an address vector in the form that is copied into each datagram's descriptor.
#pragma once
#include <kern/result.hpp>
#include <rdma/driver.hpp>
#include <hw/mlx4/wqe.hpp>
#include "../mellanox_icm/address_handle.hpp"
#include "capabilities.hpp"

namespace mlx4
{

class Ah final : public mellanox_icm::AddressHandle<wire::AddressVector>
{
public:
	using Object = rdma::DriverObject<ib_ah, Ah>;
	static const Ah &of(ib_ah *ah) { return Object::state(ah); }
	static Ah &of_mutable(ib_ah *ah) { return Object::state(ah); }

	/* Any context. Errors: EINVAL for a port or a rate that the card does not have. */
	static kern::Result<wire::AddressVector> build(const Capabilities &capabilities, u32 pdn,
						       const rdma_ah_attr &attr);

	using AddressHandle::AddressHandle;
};

/*
 * The card's number for a static rate: 0 for no limit, else the rate + 5 where the card knows it; a
 * rate that it does not know becomes the next lower one that it does.
 */
u8 static_rate(const Capabilities &capabilities, u8 rate);

} // namespace mlx4
