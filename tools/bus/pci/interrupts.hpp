// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface by which the interrupts of a PCI function are delivered to its guest. Each
// protocol (vfio-user, vhost-user) implements it.
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
	// If true, no vector may send, because MSI-X control has Function Mask or bus mastering is
	// off.
	virtual void set_msix_masked(bool) {}
	// MSI-X was disabled: drops pending interrupts.
	virtual void clear_pending() = 0;

	// Access the MSI-X table at @offset, inside of the table. If the client keeps the table
	// itself, reads return zeros and writes are ignored.
	virtual void read_table(std::uint64_t, std::span<std::byte> data) const
	{
		std::ranges::fill(data, std::byte{0});
	}
	virtual void write_table(std::uint64_t, std::span<const std::byte>) {}

	// Set the INTA line, and Interrupt Disable of the command register.
	virtual void set_intx(bool asserted) = 0;
	virtual void set_intx_disabled(bool disabled) = 0;

	// The function was reset.
	virtual void reset() = 0;
	// Releases all descriptors of a guest that has disconnected.
	virtual void release() = 0;
};

} // namespace weft::pci
