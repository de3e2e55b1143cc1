// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Specialises mellanox_icm::Adapter, the code for PCI that mlx4 and mthca share, for the InfiniHost
// III.
#pragma once
#include <kern/log.hpp>
#include "../mellanox_icm/adapter.hpp"
#include "hca.hpp"
#include "ib_device.hpp"

namespace mthca
{

struct Card {
	using Hca = mthca::Hca;
	using IbDevice = mthca::IbDevice;
	static constexpr const char *name = "weft_mthca";
	static constexpr size_t bar0_bytes = wire::bar0::size;
	static constexpr size_t bar2_bytes = 1 << 20;
	/* All words of the error buffer signal an error. */
	static constexpr u32 error_words = ~0u;

	/* The card has no ownership semaphore, so a driver simply resets the card. */
	static kern::Result<> claim(kern::pci::Device pci, const kern::Mmio &bar0)
	{
		if (bar0.read_be32(hw::mellanox_icm::hcr::at + hw::mellanox_icm::hcr::control) ==
		    ~0u) {
			kern_dev_error(pci.dev(), "the card does not respond\n");
			return kern::Error{-ENODEV};
		}
		return {};
	}
	static void release(const kern::Mmio &) {}
	static kern::Result<> before_reset(kern::pci::Device, const kern::Mmio &) { return {}; }
};

} // namespace mthca
