// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Specialises mellanox_icm::Adapter, the code for PCI that mlx4 and mthca share, for the
// ConnectX-2.
#pragma once
#include <kern/log.hpp>
#include <kern/time.hpp>
#include "../mellanox_icm/adapter.hpp"
#include "hca.hpp"
#include "ib_device.hpp"

namespace mlx4
{

struct Card {
	using Hca = mlx4::Hca;
	using IbDevice = mlx4::IbDevice;
	static constexpr const char *name = "weft_mlx4";
	static constexpr size_t bar0_bytes = wire::bar0::size;
	static constexpr size_t bar2_bytes =
		(wire::uar::first_usable_page + 1) * wire::uar::page_size;
	/* Only the first word of the error buffer signals an error. The others describe it. */
	static constexpr u32 error_words = 1;

	/*
	 * Reading the register acquires ownership; a value other than 0 means that another driver
	 * has it.
	 */
	static kern::Result<> claim(kern::pci::Device pci, const kern::Mmio &bar0)
	{
		if (const u32 owner = bar0.read_be32(wire::bar0::ownership)) {
			kern_dev_error(pci.dev(), owner == all_ones
							  ? "the card does not respond\n"
							  : "the card belongs to another driver\n");
			return kern::Error{-ENODEV};
		}
		return {};
	}
	static void release(const kern::Mmio &bar0) { bar0.write_be32(wire::bar0::ownership, 0); }
	/* Acquires the semaphore, which tools that write the flash memory also use. */
	static kern::Result<> before_reset(kern::pci::Device pci, const kern::Mmio &bar0)
	{
		const auto deadline = kern::Deadline::in_ms(semaphore_wait_ms);
		while (const u32 taken = bar0.read_be32(wire::bar0::semaphore)) {
			if (taken == all_ones || deadline.passed()) {
				kern_dev_error(pci.dev(),
					       "the card's semaphore cannot be acquired\n");
				return kern::Error{-EAGAIN};
			}
			kern::sleep_ms(1);
		}
		return {};
	}

private:
	static constexpr u32 all_ones = 0xffffffff;
	static constexpr unsigned int semaphore_wait_ms = 10000;
};

} // namespace mlx4
