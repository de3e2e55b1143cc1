// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the emulated Ammasso 1100: one PCI function, which has an Ethernet interface and an
// RNIC. Each of the two has its own MAC address, and both share one cable.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <hw/amso1100/registers.hpp>

#include "cards/amso1100/ethernet_rings.hpp"
#include "cards/amso1100/interrupts.hpp"
#include "cards/amso1100/rnic.hpp"
#include "base/loop.hpp"
#include "cards/card.hpp"
#include "net/ethernet/channel.hpp"
#include "bus/pci/device.hpp"

namespace weft::amso1100
{

class Card final : public cards::Card, private PciDevice
{
public:
	// @channel is the channel to the Ethernet segment, or null if the card is not attached to
	// one. Addresses are derived from @guid.
	Card(std::uint64_t guid, std::shared_ptr<ethernet::Channel> channel);

	// cards::Card.
	PciDevice *function() override { return this; }
	std::vector<cards::Count> activity() const override;

	// Return the hardware address of the Ethernet interface, and that of the RNIC.
	ethernet::Address host_address() const { return host_address_; }
	ethernet::Address rdma_address() const { return host_address_ + 1; }

private:
	// PciDevice.
	const PciDescription &description() const override { return description_; }
	void attach(PciHost &host) override;
	void detach() override;
	void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void region_write(unsigned bar, std::uint64_t offset,
			  std::span<const std::byte> data) override;
	void reset(PciReset kind) override;
	void bus_master_changed(bool on) override;

	void transmit();
	void serve();
	void send(const ethernet::FramePtr &frame);
	void receive(const ethernet::FramePtr &frame);
	void read_page(std::uint64_t offset, std::span<std::byte> data);

	const PciDescription description_;
	const ethernet::Address host_address_;
	const std::shared_ptr<ethernet::Channel> channel_;
	PciHost *host_ = nullptr;
	// These exist while the card is attached.
	std::optional<Wakeup> transmit_wakeup_, request_wakeup_;
	std::optional<ethernet::Channel::End> cable_;
	// RNIC frames that were dropped because the Ethernet had no space; TCP retransmits them.
	std::atomic<std::uint64_t> lost_{0};
	Interrupts interrupts_;
	EthernetRings rings_;
	Rnic rnic_;
};

} // namespace weft::amso1100
