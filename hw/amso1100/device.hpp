// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages an Ammasso 1100 from probe to remove.
#pragma once
#include <kern/irq.hpp>
#include <kern/pci.hpp>
#include "ethernet.hpp"
#include "ib_device.hpp"
#include "rdma_interface.hpp"
#include "register_page.hpp"

namespace amso1100
{

class Device final : public PciFunction
{
public:
	/*
	 * Starts the card. May sleep. Errors: ENODEV for another device, EPROTO for a card that
	 * violates the interface, and those of the kernel's functions.
	 */
	static kern::Result<kern::Owned<Device>> probe(kern::pci::Device pci, unsigned long data);
	~Device() { shutdown(); }
	/*
	 * Removes the interface, and stops the card's DMA and interrupts. May be called several
	 * times. May sleep.
	 */
	void shutdown();
	/*
	 * Called before and after a reset of the function: they remove both halves of the card, and
	 * add them again. If the card does not recover, both halves are missing until the driver is
	 * bound again.
	 */
	void reset_prepare() { shutdown(); }
	void reset_done();

	void disable_bus_mastering() override;
	void synchronize() override
	{
		irq_.synchronize();
		rnic_irq_.synchronize();
	}
	void failed() override { rnic_failed_.queue(); }

	explicit Device(kern::pci::Device pci) : pci_(pci) {}

private:
	kern::Result<> start();
	/* Starts the RNIC. If this fails, the card is still an Ethernet interface. */
	kern::Result<> start_rnic(const kern::Mmio &page);
	void stop_rnic();
	void report_failure();
	/*
	 * Requests MSI-X vectors, or the interrupt pin if the card has no MSI-X, like the real
	 * board.
	 */
	kern::Result<> request_interrupts();
	bool interrupt();
	bool rnic_interrupt();
	bool has_messages() const { return vectors_.count() == wire::vectors; }

	/*
	 * shutdown() releases these members in reverse order: first the interrupts, then the
	 * interface, then the access to the card.
	 */
	kern::pci::Device pci_;
	kern::pci::Enabled enabled_;
	kern::Mmio registers_;
	RegisterPage page_{};
	kern::Mmio rings_;
	kern::Mmio window_;
	kern::pci::InterruptVectors vectors_;
	/* owned by the network stack; nullptr if it does not exist */
	Ethernet *ethernet_ = nullptr;
	kern::Atomic<Rnic *> irq_rnic_{nullptr}; /* used by the interrupt handler */
	kern::Irq irq_{kern::method<&Device::interrupt>, this};
	kern::Irq rnic_irq_{kern::method<&Device::rnic_interrupt>, this};
	kern::Owned<Rnic> rnic_;
	/* also used by the work item that reports a failure */
	kern::Atomic<IbDevice *> ib_{nullptr};
	RdmaInterface *rdma_interface_ = nullptr; /* owned by the network stack */
	kern::Work rnic_failed_{kern::method<&Device::report_failure>, this};
};

} // namespace amso1100
