// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/card.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "cards/mellanox_icm/registers.hpp"
#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

namespace
{

constexpr unsigned kBarRegisters = 0;
constexpr unsigned kBarMsix = 4;

PciDescription describe(const CardConfig &config)
{
	PciDescription description;
	description.vendor = description.subsystem_vendor = hw::mlx5::pci_vendor_id;
	description.device = hw::mlx5::pci_device_id;
	description.subsystem = hw::mlx5::pci_subsystem_id;
	description.class_code = hw::mlx5::pci_class_infiniband;
	description.link_speed = 3;
	description.link_width = 16;
	description.serial = config.node_guid;
	description.product = {.name = limits::kProductName,
			       .part_number = limits::kBoardId,
			       .serial_number = fmt::format("{:016x}", config.node_guid)};
	description.vendor_capability = hw::mlx5::gateway::size;
	description.bars[kBarRegisters] = {limits::kRegistersSize, true, true};
	description.bars[kBarMsix] = {limits::kMsixBarSize, true, false};
	description.msix = {.vectors = limits::kVectors,
			    .table_bar = kBarMsix,
			    .table_offset = 0,
			    .pba_bar = kBarMsix,
			    .pba_offset = limits::kPbaOffset};
	return description;
}

} // namespace

Card::Card(CardConfig config)
    : config_(std::move(config)), description_(describe(config_)), unsupported_(config_.name)
{
	if (config_.ports.empty() || config_.ports.size() > limits::kMostPorts ||
	    std::ranges::find(config_.ports, nullptr) != config_.ports.end())
		throw std::invalid_argument(config_.name + ": a card has one or two ports");
	if (config_.enhanced_ipoib && config_.ports.size() != 1)
		throw std::invalid_argument(config_.name +
					    ": enhanced_ipoib needs a card with one port");
	if (config_.node_guid == 0)
		throw std::invalid_argument(config_.name + ": the node GUID is 0");
	programs_.emplace(programs_of(config_));
}

Card::~Card() = default;

void Card::attach(PciHost &host)
{
	core_ = std::make_unique<Core>(config_, host, activity_, unsupported_, faults_, *programs_,
				       polls_);
}

void Card::detach()
{
	core_.reset();
}

void Card::reset(PciReset kind)
{
	core_->reset();
	core_->gateway.reset();
	if (kind == PciReset::host_gone)
		core_->polled.drop_file();
}

PciMapping Card::mapping(unsigned bar)
{
	return bar == kBarRegisters ? core_->polled.mapping() : PciMapping{};
}

// Handled like disabling and enabling bus mastering: packets in flight do not read memory any more,
// because the guest may reuse removed memory.
void Card::memory_changed()
{
	core_->set_bus_master(false);
	core_->set_bus_master(core_->host.bus_master());
}

void Card::bus_master_changed(bool on)
{
	core_->set_bus_master(on);
}

void Card::break_down()
{
	if (core_)
		core_->fail(hw::mlx5::health::unrecoverable);
}

void Card::freeze()
{
	if (core_)
		core_->health.freeze();
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

std::uint32_t Card::capability_read(unsigned offset)
{
	return core_->gateway.read(offset);
}

void Card::capability_write(unsigned offset, std::uint32_t value)
{
	core_->gateway.write(offset, value);
}

void Card::region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data)
{
	if (bar != kBarRegisters || offset >= hw::mlx5::segment::end) {
		std::ranges::fill(data, std::byte{0});
		return;
	}
	mellanox_icm::read_dwords(offset, data, [this](std::uint64_t place) {
		return core_->read(static_cast<std::uint32_t>(place));
	});
}

void Card::region_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> data)
{
	if (bar != kBarRegisters)
		return;
	mellanox_icm::write_dwords(offset, data, [this](std::uint64_t place, std::uint32_t value) {
		constexpr std::uint32_t page = hw::mlx5::uar::page_size;
		if (place < hw::mlx5::segment::end)
			core_->write(static_cast<std::uint32_t>(place), value);
		else
			core_->doorbells.write(static_cast<std::uint32_t>(place / page),
					       static_cast<std::uint32_t>(place % page), value);
	});
}

} // namespace weft::mlx5
