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

/* A PCI function. Other fibers do not run during its methods. */
class Function
{
public:
	virtual ~Function() = default;

	virtual void read_config(unsigned int offset, std::span<std::byte> data) = 0;
	virtual void write_config(unsigned int offset, std::span<const std::byte> data) = 0;
	/* Returns 0 if there is no such BAR. */
	virtual std::uint64_t bar_size(unsigned int bar) const = 0;
	virtual void read(unsigned int bar, std::uint64_t offset, std::span<std::byte> data) = 0;
	virtual void write(unsigned int bar, std::uint64_t offset,
			   std::span<const std::byte> data) = 0;
	virtual unsigned int vectors() const = 0;
	/*
	 * Returns the memory that the device can access, which includes mapped memory. Addresses
	 * are those of the CPU.
	 */
	virtual std::span<std::byte> memory() = 0;
};

/* Adds a function. Its driver is probed now or when it is registered. Context: a task. */
pci_dev *plug(Function &function, std::string name);
/* Removes a function. The driver has released it when this returns. Context: a task. */
void unplug(pci_dev *pci);
/* Delivers an interrupt message of the function. Context: any. */
void interrupt(const Function &function, unsigned int vector);

} // namespace sim::pci
