// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Delivers the interrupts of a function to its guest; each protocol implements this interface.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace weft::pci
{

// Interrupts - all calls happen on the loop of the device.
class Interrupts
{
public:
	virtual ~Interrupts() = default;

	// Returns true if the bus can signal INTx. If not, the function shows no interrupt pin to
	// its guest.
	virtual bool carries_intx() const = 0;

	// Sends the message of @vector, which may not exist. If the vector is masked or not set up,
	// the message becomes pending.
	virtual void raise_msix(unsigned vector) = 0;
	virtual bool pending(std::size_t vector) const = 0;
	// No vector may send: MSI-X control has Function Mask, or the function is no bus master.
	virtual void set_msix_masked(bool) {}
	// MSI-X was disabled: drops pending interrupts.
	virtual void clear_pending() = 0;

	// The MSI-X table, @offset bytes from its start and inside of it. Where the other side
	// keeps the table itself, nothing is behind it here.
	virtual void read_table(std::uint64_t, std::span<std::byte> data) const
	{
		std::ranges::fill(data, std::byte{0});
	}
	virtual void write_table(std::uint64_t, std::span<const std::byte>) {}

	// The INTA line, and the command register's Interrupt Disable.
	virtual void set_intx(bool asserted) = 0;
	virtual void set_intx_disabled(bool disabled) = 0;

	// The function was reset.
	virtual void reset() = 0;
	// The guest has disconnected: releases all descriptors that it has passed.
	virtual void release() = 0;
};

} // namespace weft::pci
