// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/card.hpp"

#include <stdexcept>

#include <hw/mlx4/registers.hpp>

#include "cards/mlx4/core.hpp"

namespace weft::mlx4
{

namespace bar0 = hw::mlx4::bar0;
namespace hcr = hw::mlx4::hcr;

namespace
{

constexpr std::uint64_t kSmallBar = 4096;

} // namespace

PciDescription CardKind::describe(const CardConfig &config)
{
	PciDescription description = mellanox_icm::describe_function(
		hw::mlx4::pci_vendor_id, hw::mlx4::pci_device_id, config.node_guid,
		limits::kMsixBarSize, limits::kVectors, limits::kPbaOffset);
	description.subsystem = 0x0006;
	description.revision = 0xb0;
	description.link_speed = 2;
	description.bars[kBarRegisters] = {config.small_bars ? kSmallBar : bar0::size, true, false};
	description.bars[kBarUar] = {config.small_bars ? kSmallBar : limits::kUarSize, true, true};
	return description;
}

hca::ProgramPorts CardKind::programs(const CardConfig &config)
{
	return programs_of(config);
}

void CardKind::check(const CardConfig &config)
{
	if (config.ports.empty() || config.ports.size() > 2)
		throw std::invalid_argument(config.name + ": a card has one or two ports");
}

std::uint32_t CardKind::read(Core &core, std::uint64_t offset)
{
	if (offset >= bar0::hcr && offset < bar0::hcr + hcr::size)
		return core.command_register.read(offset - bar0::hcr);
	if (offset >= limits::kErrorBuffer &&
	    offset < limits::kErrorBuffer + 4 * limits::kErrorBufferDwords)
		return core.error_buffer[(offset - limits::kErrorBuffer) / 4];
	// A read that returns 0 acquires the semaphore. A reset releases it.
	if (offset == bar0::semaphore)
		return std::exchange(core.semaphore_taken, true);
	return 0; // also for the ownership word, because the card has only one function
}

void CardKind::write(Core &core, std::uint64_t offset, std::uint32_t value)
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

} // namespace weft::mlx4

template class weft::mellanox_icm::Function<weft::mlx4::CardKind>;
