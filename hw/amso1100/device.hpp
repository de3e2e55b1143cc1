// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// An Ammasso 1100, from probe to remove.
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
	 * Errors: ENODEV for a device that is not such a card, EPROTO for one that violates the
	 * interface, and the kernel's. May sleep.
	 */
	static kern::Result<kern::Owned<Device>> probe(kern::pci::Device pci, unsigned long data);
	~Device() { shutdown(); }
	/* Ends the interface, the card's DMA and its interrupts; any number of times. May sleep. */
	void shutdown();
	/*
	 * Called around a reset of the function: both halves are removed and added again. A card
	 * that does not recover stays without both until it is bound again.
	 */
	void reset_prepare() { shutdown(); }
	void reset_done();

	void cut_off() override;
	void synchronize() override
	{
		irq_.synchronize();
		rnic_irq_.synchronize();
	}
	void failed() override { rnic_failed_.queue(); }

	explicit Device(kern::pci::Device pci) : pci_(pci) {}

private:
	kern::Result<> start();
	/* The card is an Ethernet interface whatever its RNIC can do. */
	kern::Result<> start_rnic(const kern::Mmio &page);
	void stop_rnic();
	void report_failure();
	/* Messages, or the pin where the card has none (the board has none). */
	kern::Result<> request_interrupts();
	bool interrupt();
	bool rnic_interrupt();
	bool has_messages() const { return vectors_.count() == wire::vectors; }

	/*
	 * shutdown() frees from the bottom: first the interrupt, then the interface, then the
	 * access to the card.
	 */
	kern::pci::Device pci_;
	kern::pci::Enabled enabled_;
	kern::Mmio registers_;
	RegisterPage page_{};
	kern::Mmio rings_;
	kern::Mmio window_;
	kern::pci::InterruptVectors vectors_;
	/* owned by the network stack; null while it does not exist */
	Ethernet *ethernet_ = nullptr;
	kern::Atomic<Rnic *> received_{nullptr}; /* read by the interrupt handler */
	kern::Irq irq_{kern::method<&Device::interrupt>, this};
	kern::Irq rnic_irq_{kern::method<&Device::rnic_interrupt>, this};
	kern::Owned<Rnic> rnic_;
	kern::Atomic<IbDevice *> ib_{nullptr};    /* also read by the task that reports a failure */
	RdmaInterface *rdma_interface_ = nullptr; /* owned by the network stack */
	kern::Work rnic_failed_{kern::method<&Device::report_failure>, this};
};

} // namespace amso1100
