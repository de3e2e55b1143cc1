// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements address handles. An address handle is an address vector that is copied into the
// descriptor of each datagram.
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

	/* Errors: EINVAL for a port or an SL that the card does not have. Context: any. */
	static kern::Result<wire::AddressVector> build(const Capabilities &capabilities, u32 pdn,
						       const rdma_ah_attr &attr);

	using AddressHandle::AddressHandle;
};

/*
 * Returns the card's code for a static rate: 0 for no limit, otherwise the highest supported rate
 * that does not exceed it, plus 5.
 */
u8 static_rate(const Capabilities &capabilities, u8 rate);

} // namespace mlx4
