// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// An Ammasso 1100, from probe to remove.
#pragma once
#include <kern/irq.hpp>
#include <kern/pci.hpp>
#include "ethernet.hpp"
#include "register_page.hpp"

namespace ammasso
{

class Device
{
public:
	/*
	 * Errors: ENODEV of what is no such card, EPROTO of one that says what cannot be, and the
	 * kernel's. May sleep.
	 */
	static kern::Result<kern::Owned<Device>> probe(kern::pci::Device pci, unsigned long data);
	~Device() { shutdown(); }
	/* Ends the interface, the card's DMA and its interrupts; any number of times. May sleep. */
	void shutdown();

	explicit Device(kern::pci::Device pci) : pci_(pci) {}

private:
	kern::Result<> start();
	bool interrupt();

	/*
	 * shutdown() frees from below: the interrupt first, then the interface, then what they
	 * reach the card by.
	 */
	kern::pci::Device pci_;
	kern::pci::Enabled enabled_;
	kern::Mmio registers_;
	RegisterPage page_{};
	kern::Mmio rings_;
	kern::pci::InterruptVectors vectors_;
	Ethernet *ethernet_ = nullptr; /* the stack's; null before it is there and after */
	kern::Irq irq_{kern::method<&Device::interrupt>, this};
};

} // namespace ammasso
