// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Simulates the PCI bus: the functions that are plugged into the simulated kernel. The caller of
// plug() implements the behaviour of a function (tools/explore/card.cpp).
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

struct pci_dev;

/* An entry of a module's table of devices; an empty entry ends the table. */
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
	 * Returns the memory that the device can access, including mapped memory. Addresses are CPU
	 * addresses.
	 */
	virtual std::span<std::byte> memory() = 0;
};

/* Adds a function. Its driver is probed now, or when the driver is registered. Context: a task. */
pci_dev *plug(Function &function, std::string name);
/* Removes a function. When this returns, the driver has released it. Context: a task. */
void unplug(pci_dev *pci);
/* Delivers an MSI-X interrupt of the function. Context: any. */
void interrupt(const Function &function, unsigned int vector);

} // namespace sim::pci
