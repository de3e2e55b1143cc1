// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/card.hpp"

#include <algorithm>
#include <stdexcept>

#include <hw/connectx/registers.hpp>

#include "connectx/core.hpp"
#include "mellanox/registers.hpp"

namespace weft::connectx
{

namespace bar0 = hw::connectx::bar0;
namespace hcr = hw::connectx::hcr;

namespace
{

constexpr std::uint64_t kSmallBar = 4096;

enum Bar : unsigned { kBarRegisters = 0, kBarUar = 2, kBarMsix = 4 };

PciDescription describe(const CardConfig &config)
{
	PciDescription description;
	description.vendor = hw::connectx::pci_vendor_id;
	description.device = hw::connectx::pci_device_id;
	description.subsystem_vendor = hw::connectx::pci_vendor_id;
	description.subsystem = 0x0006;
	description.class_code = 0x0c0600; // serial bus, InfiniBand
	description.revision = 0xb0;
	description.intx = true;
	description.link_speed = 2;
	description.link_width = 8;
	description.serial = config.node_guid;
	description.bars[kBarRegisters] = {config.small_bars ? kSmallBar : bar0::size, true, false};
	description.bars[kBarUar] = {config.small_bars ? kSmallBar : limits::kUarSize, true, true};
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
	// A read that gives 0 takes the semaphore; a reset gives it back.
	if (offset == bar0::semaphore)
		return std::exchange(core.semaphore_taken, true);
	return 0; // the ownership word among them: the card has one function
}

void write_register(Core &core, std::uint64_t offset, std::uint32_t value)
{
	if (offset >= bar0::hcr && offset < bar0::hcr + hcr::size)
		core.command_register.write(offset - bar0::hcr, value);
	else if (offset == bar0::reset && (value & bar0::reset_bit))
		core.reset();
	else if (offset == bar0::semaphore && value == 0)
		core.semaphore_taken = false;
	else if (offset == limits::kClearInterrupt || offset == limits::kClearInterrupt + 4)
		core.host.set_intx(false);
}

} // namespace

Card::Card(CardConfig config, TransportFactory make_transport)
    : config_(std::move(config)), make_transport_(std::move(make_transport)),
      description_(describe(config_))
{
	if (config_.ports.empty() || config_.ports.size() > 2)
		throw std::invalid_argument(config_.name + ": a card has one or two ports");
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

// As where bus mastering ends and begins again: packets under way read nothing any more, for who is
// told that its memory is its own again may use it. What is lost with them although its memory has
// stayed is sent again, as what links lose.
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
	read_dwords(offset, data,
		    [this](std::uint64_t place) { return read_register(*core_, place); });
}

void Card::region_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> data)
{
	if (bar == kBarUar)
		core_->doorbells.write(offset, data);
	else if (bar == kBarRegisters)
		write_dwords(offset, data, [this](std::uint64_t place, std::uint32_t value) {
			write_register(*core_, place, value);
		});
}

} // namespace weft::connectx
