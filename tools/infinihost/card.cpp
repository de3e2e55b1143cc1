// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "infinihost/card.hpp"

#include <algorithm>
#include <stdexcept>

#include <hw/mellanox/commands.hpp>
#include <hw/infinihost/registers.hpp>

#include "infinihost/core.hpp"
#include "mellanox/registers.hpp"

namespace weft::infinihost
{

namespace bar0 = hw::infinihost::bar0;
namespace hcr = hw::mellanox::hcr;

namespace
{

enum Bar : unsigned { kBarRegisters = 0, kBarUar = 2, kBarMsix = 4 };

PciDescription describe(const CardConfig &config)
{
	PciDescription description;
	description.vendor = hw::infinihost::pci_vendor_id;
	description.device = hw::infinihost::pci_device_id;
	description.subsystem_vendor = hw::infinihost::pci_vendor_id;
	description.subsystem = hw::infinihost::pci_device_id;
	description.class_code = 0x0c0600; // serial bus, InfiniBand
	description.revision = 0xa0;
	description.intx = true;
	description.link_speed = 1;
	description.link_width = 8;
	description.serial = config.node_guid;
	// Linux takes no other size of the first.
	description.bars[kBarRegisters] = {bar0::size, true, false};
	description.bars[kBarUar] = {limits::kUarSize, true, true};
	description.bars[kBarMsix] = {limits::kMsixBarSize, true, false};
	description.msix.vectors = limits::kVectors;
	description.msix.table_bar = kBarMsix;
	description.msix.table_offset = 0;
	description.msix.pba_bar = kBarMsix;
	description.msix.pba_offset = limits::kPbaOffset;
	return description;
}

std::uint32_t read_register(Core &core, std::uint64_t offset)
{
	if (offset >= bar0::hcr && offset < bar0::hcr + hcr::size)
		return core.command_register.read(offset - bar0::hcr);
	if (offset >= limits::kErrorBuffer &&
	    offset < limits::kErrorBuffer + 4 * limits::kErrorBufferDwords)
		return core.error_buffer[(offset - limits::kErrorBuffer) / 4];
	return 0;
}

void write_register(Core &core, std::uint64_t offset, std::uint32_t value)
{
	constexpr std::size_t indexes_end =
		limits::kEqConsumerIndexes + hw::infinihost::eqs * hw::infinihost::eq_ci_stride;
	if (offset >= bar0::hcr && offset < bar0::hcr + hcr::size)
		core.command_register.write(offset - bar0::hcr, value);
	else if (offset >= limits::kEqConsumerIndexes && offset < indexes_end)
		core.doorbells.set_eq_consumer_index(offset - limits::kEqConsumerIndexes, value);
	else if (offset == limits::kEqArm || offset == limits::kEqArm + 4)
		core.doorbells.arm_eqs(offset == limits::kEqArm ? 32 : 0, value);
	else if (offset == bar0::reset && (value & bar0::reset_bit))
		core.reset();
	else if (offset == limits::kClearInterrupt || offset == limits::kClearInterrupt + 4)
		core.host.set_intx(false);
}

} // namespace

Card::Card(CardConfig config, TransportFactory make_transport)
    : config_(std::move(config)), make_transport_(std::move(make_transport)),
      description_(describe(config_))
{
	// iPXE takes both for granted.
	if (config_.ports.size() != 2)
		throw std::invalid_argument(config_.name + ": this card has two ports");
	if (std::ranges::find(config_.ports, nullptr) != config_.ports.end())
		throw std::invalid_argument(config_.name + ": a port is missing");
	if (config_.node_guid == 0)
		throw std::invalid_argument(config_.name + ": the node GUID is 0");
}

Card::~Card() = default;

void Card::attach(PciHost &host)
{
	core_ = std::make_unique<Core>(config_, make_transport_, host, activity_, faults_);
}

void Card::detach()
{
	core_.reset();
}

void Card::reset(PciReset)
{
	core_->reset();
}

// As where bus mastering ends and begins again: packets under way read nothing any more of what the
// machine has taken back.
void Card::memory_changed()
{
	core_->set_bus_master(false);
	core_->set_bus_master(core_->host.bus_master());
}

void Card::bus_master_changed(bool on)
{
	core_->set_bus_master(on);
}

void Card::break_down(std::uint32_t code)
{
	if (core_)
		core_->break_down(code);
}

void Card::interrupt_idly()
{
	if (core_)
		core_->interrupt_idly();
}

CardContext *Card::context()
{
	return core_ ? &core_->context : nullptr;
}

// Registers are dwords. Parts of one read what the whole does; parts are not written.
void Card::region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data)
{
	if (bar != kBarRegisters) {
		std::ranges::fill(data, std::byte{0});
		return;
	}
	mellanox::read_dwords(offset, data,
			      [this](std::uint64_t place) { return read_register(*core_, place); });
}

void Card::region_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> data)
{
	if (bar == kBarUar)
		core_->doorbells.write(offset, data);
	else if (bar == kBarRegisters)
		mellanox::write_dwords(offset, data,
				       [this](std::uint64_t place, std::uint32_t value) {
					       write_register(*core_, place, value);
				       });
}

} // namespace weft::infinihost
