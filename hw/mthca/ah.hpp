// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements address handles. An address handle is an address vector that is copied into the
// descriptor of each datagram.
#pragma once
#include <kern/result.hpp>
#include <rdma/driver.hpp>
#include <hw/mthca/wqe.hpp>
#include "../mellanox_icm/address_handle.hpp"
#include "capabilities.hpp"

namespace mthca
{

class Ah final : public mellanox_icm::AddressHandle<wire::AddressVector>
{
public:
	using Object = rdma::DriverObject<ib_ah, Ah>;
	static const Ah &of(ib_ah *ah) { return Object::state(ah); }
	static Ah &of_mutable(ib_ah *ah) { return Object::state(ah); }

	/* Errors: EINVAL for a port or a GID index that the card does not have. Context: any. */
	static kern::Result<wire::AddressVector> build(const Capabilities &capabilities, u32 pdn,
						       const rdma_ah_attr &attr);

	using AddressHandle::AddressHandle;
};

/* Codes of static rates: fractions of the port's rate. */
namespace rate_code
{
inline constexpr u8 full = 0;
inline constexpr u8 quarter = 1;
inline constexpr u8 eighth = 2;
inline constexpr u8 half = 3;
} // namespace rate_code

/*
 * Returns the card's code for a static rate (enum ib_rate) on a port with a rate of `port_tenths`
 * tenths of a Gb/s: the largest fraction of the port's rate that does not exceed the static rate,
 * or a quarter if the card does not support that fraction. Context: any.
 */
u8 static_rate(const Capabilities &capabilities, u8 rate, u32 port_tenths);

/* The rate of a port of the card (four lanes at single data rate) in tenths of a Gb/s. */
inline constexpr u32 sdr_4x_tenths = 100;

} // namespace mthca
