// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"

#include <kern/log.hpp>

namespace amso1100
{

kern::Result<kern::Owned<Device>> Device::probe(kern::pci::Device pci, unsigned long)
{
	auto device = KERN_TRY(kern::make<Device>(kern::Gfp::kernel, pci));
	KERN_TRY(device->start());
	return device;
}

kern::Result<> Device::start()
{
	enabled_ = KERN_TRY(kern::pci::Enabled::create(pci_, "weft_amso1100"));
	if (pci_.bar_size(0) < wire::bar0_size || pci_.bar_size(4) < wire::rings_end)
		return kern::Error{-ENODEV};
	registers_ = KERN_TRY(pci_.map_bar(0, 0, wire::bar0_size));
	const auto page = KERN_TRY(pci_.map_bar(4, wire::page_base, wire::page::size));
	rings_ =
		KERN_TRY(pci_.map_bar(4, wire::receive_ring, wire::rings_end - wire::receive_ring));
	page_ = KERN_TRY(read_register_page(page));

	/* Interrupts stay disabled until there is a handler. */
	registers_.write32(wire::reg::idis, 1);
	registers_.write32(wire::reg::nimr0, ~u32{0});
	if (auto messages = kern::pci::InterruptVectors::create(pci_, wire::vectors, wire::vectors))
		vectors_ = messages.take();
	else
		vectors_ = KERN_TRY(kern::pci::InterruptVectors::create_line(pci_));
	{
		kern::RtnlGuard guard;
		ethernet_ = KERN_TRY(Ethernet::create(
			{pci_.dev(), &registers_, rings_.view(0, rings_.size()), &page_}));
	}
	KERN_TRY(request_interrupts());
	registers_.write32(wire::reg::idis, 0);
	if (const auto opened = start_rnic(page); !opened) {
		kern_dev_error(pci_.dev(), "the RNIC cannot be used (%d)\n", opened.error());
		stop_rnic();
	}
	return {};
}

kern::Result<> Device::request_interrupts()
{
	constexpr auto number = [](wire::Vector vector) {
		return static_cast<unsigned int>(vector);
	};
	const bool shared = !has_messages();
	KERN_TRY(
		irq_.request(vectors_.irq(number(wire::Vector::network)), "weft_amso1100", shared));
	if (has_messages())
		KERN_TRY(rnic_irq_.request(vectors_.irq(number(wire::Vector::rnic)),
					   "weft_amso1100_rnic"));
	return {};
}

kern::Result<> Device::start_rnic(const kern::Mmio &page)
{
	/* The card must reply to a request within this time. */
	constexpr unsigned int reply_timeout_ms = 20000;
	const u64 most = wire::receive_ring - wire::page_base;
	const u64 bytes = page_.window_size < most ? page_.window_size : most;
	const QueueLayout layout = KERN_TRY(read_queue_layout(page, bytes));
	window_ = KERN_TRY(pci_.map_bar(4, wire::page_base, bytes));
	rnic_ = KERN_TRY(kern::make<Rnic>(kern::Gfp::kernel,
					  Rnic::Parts{pci_.dev(), &registers_, &window_, &page_,
						      layout, reply_timeout_ms, this}));
	irq_rnic_.store_release(rnic_.get());
	KERN_TRY(rnic_->start());
	ib_.store_release(KERN_TRY(IbDevice::create(*rnic_)));
	/* A failure before this point could not be reported, so report it now. */
	if (rnic_->channel().failed())
		rnic_failed_.queue();
	rdma_interface_ = KERN_TRY(RdmaInterface::create(*rnic_));
	return {};
}

void Device::stop_rnic()
{
	if (rdma_interface_)
		std::exchange(rdma_interface_, nullptr)->remove();
	if (IbDevice *const ib = ib_.exchange(nullptr)) {
		/* Wait for a report that is using the device. */
		rnic_failed_.cancel();
		IbDevice::destroy(ib);
	}
	if (rnic_)
		rnic_->stop();
	irq_rnic_.store_release(nullptr);
	synchronize();
	rnic_.reset();
	rnic_failed_.cancel();
	window_ = {};
}

/*
 * The card cannot access memory any more. Its registers can still be read, but their values are not
 * used.
 */
void Device::disable_bus_mastering()
{
	constexpr int command = 4;
	constexpr u16 bus_master = 1 << 2;
	if (const auto now = pci_.read_config16(command))
		kern::ignore(pci_.write_config16(command, now.value() & ~bus_master));
}

void Device::report_failure()
{
	if (IbDevice *const ib = ib_.load_acquire())
		rdma::dispatch(IB_EVENT_DEVICE_FATAL, &ib->ib, 0);
}

void Device::shutdown()
{
	stop_rnic();
	if (registers_)
		registers_.write32(wire::reg::idis, 1);
	irq_.free();
	rnic_irq_.free();
	/*
	 * remove() waits for frames in flight. The network stack does not use the interface any
	 * more when the guard is released.
	 */
	if (ethernet_) {
		kern::RtnlGuard guard;
		ethernet_->remove();
		/*
		 * Must precede the release of the guard, which frees buffers that the card may
		 * still own.
		 */
		disable_bus_mastering();
	}
	ethernet_ = nullptr;
	vectors_ = {};
	rings_ = {};
	registers_ = {};
	enabled_ = {};
}

void Device::reset_done()
{
	/*
	 * The device may have been started by another reset, because PCI error recovery does not
	 * hold the device lock.
	 */
	if (registers_)
		return;
	if (const auto started = start(); !started) {
		kern_dev_error(pci_.dev(), "the card cannot be started after its reset (%d)\n",
			       started.error());
		shutdown();
	}
}

bool Device::interrupt()
{
	if (has_messages())
		return ethernet_->interrupt();
	Rnic *const rnic = irq_rnic_.load_acquire();
	bool handled = rnic && rnic->interrupt();
	if (!rnic) {
		/*
		 * Clear an interrupt that an earlier driver left pending; it would assert the pin
		 * forever.
		 */
		const u32 status = registers_.read32(wire::reg::disr);
		if (status)
			registers_.write32(wire::reg::disr, status);
		handled = status != 0;
	}
	return ethernet_->interrupt() || handled;
}

bool Device::rnic_interrupt()
{
	if (Rnic *const rnic = irq_rnic_.load_acquire())
		rnic->message();
	else
		registers_.write32(wire::reg::disr, wire::disr_hints);
	return true;
}

} // namespace amso1100
