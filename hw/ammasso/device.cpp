// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "device.hpp"

#include <kern/log.hpp>

namespace ammasso
{

kern::Result<kern::Owned<Device>> Device::probe(kern::pci::Device pci, unsigned long)
{
	auto device = TRY(kern::make<Device>(kern::Gfp::kernel, pci));
	TRY(device->start());
	return device;
}

kern::Result<> Device::start()
{
	enabled_ = TRY(kern::pci::Enabled::create(pci_, "weft_ammasso"));
	if (pci_.bar_size(0) < wire::bar0_size || pci_.bar_size(4) < wire::rings_end)
		return kern::Error{-ENODEV};
	registers_ = TRY(pci_.map_bar(0, 0, wire::bar0_size));
	const auto page = TRY(pci_.map_bar(4, wire::page_base, wire::page::size));
	rings_ = TRY(pci_.map_bar(4, wire::receive_ring, wire::rings_end - wire::receive_ring));
	page_ = TRY(read_register_page(page));

	/* Silent until there is who answers. */
	registers_.write32(wire::reg::idis, 1);
	registers_.write32(wire::reg::nimr0, ~u32{0});
	vectors_ = TRY(kern::pci::InterruptVectors::create_line(pci_));
	{
		kern::RtnlGuard guard;
		ethernet_ = TRY(Ethernet::create(
			{pci_.dev(), &registers_, rings_.view(0, rings_.size()), &page_}));
	}
	TRY(irq_.request(vectors_.irq(0), "weft_ammasso", true));
	registers_.write32(wire::reg::idis, 0);
	return {};
}

void Device::shutdown()
{
	if (registers_)
		registers_.write32(wire::reg::idis, 1);
	irq_.free();
	/*
	 * It waits for what is on its way by itself. The stack is done with it at the guard's end.
	 */
	if (ethernet_) {
		kern::RtnlGuard guard;
		ethernet_->remove();
	}
	ethernet_ = nullptr;
	vectors_ = {};
	rings_ = {};
	registers_ = {};
	enabled_ = {};
}

bool Device::interrupt()
{
	return ethernet_->interrupt();
}

} // namespace ammasso
