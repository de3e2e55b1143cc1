// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads and validates the register page, by which the card identifies itself.
#pragma once
#include <hw/amso1100/registers.hpp>
#include <kern/mmio.hpp>
#include <kern/result.hpp>

namespace amso1100
{

namespace wire = hw::amso1100;

struct RegisterPage {
	u8 host_address[6];
	u8 rdma_address[6];
	u32 window_size;   /* size of the window in bytes, from the page on */
	u32 receive_index; /* index of the next descriptor that the card will use */
};

/*
 * Errors: ENODEV if the device is not such a card, EPROTO if it has another interface version or
 * inconsistent values. Context: any.
 */
kern::Result<RegisterPage> read_register_page(const kern::Mmio &page);

} // namespace amso1100
