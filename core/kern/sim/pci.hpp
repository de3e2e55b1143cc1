// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// PCI functions that are plugged into the simulated kernel. The code that plugs a function in
// implements its behaviour (tools/explore/card.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct pci_dev;

/* An entry of a module's device table; an empty one ends the table. */
struct pci_device_id {
	std::uint16_t vendor, device;
};

namespace sim::pci
{

/* None of its calls is interrupted by another line of execution. */
class Function
{
public:
	virtual ~Function() = default;

	virtual void read_config(unsigned int offset, std::span<std::byte> data) = 0;
	virtual void write_config(unsigned int offset, std::span<const std::byte> data) = 0;
	/* 0: there is no such BAR. */
	virtual std::uint64_t bar_size(unsigned int bar) const = 0;
	virtual void read(unsigned int bar, std::uint64_t offset, std::span<std::byte> data) = 0;
	virtual void write(unsigned int bar, std::uint64_t offset,
			   std::span<const std::byte> data) = 0;
	virtual unsigned int vectors() const = 0;
	/*
	 * All memory that the device can access; mapped memory is part of it. Its addresses are the
	 * CPU's.
	 */
	virtual std::span<std::byte> memory() = 0;
};

/* Its driver is probed, now or when it is registered. In a task. */
pci_dev *plug(Function &function, std::string name);
/* Its driver has let go of it when this returns. In a task. */
void unplug(pci_dev *pci);
/* The function's message. In any line of execution. */
void interrupt(const Function &function, unsigned int vector);

} // namespace sim::pci
