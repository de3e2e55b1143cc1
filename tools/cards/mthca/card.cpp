// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/card.hpp"

#include <stdexcept>

#include <hw/mellanox_icm/commands.hpp>
#include <hw/mthca/registers.hpp>

#include "cards/mthca/core.hpp"

namespace weft::mthca
{

namespace bar0 = hw::mthca::bar0;
namespace hcr = hw::mellanox_icm::hcr;

PciDescription CardKind::describe(const CardConfig &config)
{
	PciDescription description = mellanox_icm::describe_function(
		hw::mthca::pci_vendor_id, hw::mthca::pci_device_id, config.node_guid,
		limits::kMsixBarSize, limits::kVectors, limits::kPbaOffset);
	description.subsystem = hw::mthca::pci_device_id;
	description.revision = 0xa0;
	description.link_speed = 1;
	// Linux accepts only this size of the first BAR.
	description.bars[kBarRegisters] = {bar0::size, true, false};
	description.bars[kBarUar] = {limits::kUarSize, true, true};
	return description;
}

hca::ProgramPorts CardKind::programs(const CardConfig &config)
{
	return programs_of(config);
}

void CardKind::check(const CardConfig &config)
{
	// iPXE assumes that there are two ports.
	if (config.ports.size() != 2)
		throw std::invalid_argument(config.name + ": this card has two ports");
}

std::uint32_t CardKind::read(Core &core, std::uint64_t offset)
{
	if (offset >= bar0::hcr && offset < bar0::hcr + hcr::size)
		return core.command_register.read(offset - bar0::hcr);
	if (offset >= limits::kErrorBuffer &&
	    offset < limits::kErrorBuffer + 4 * limits::kErrorBufferDwords)
		return core.error_buffer[(offset - limits::kErrorBuffer) / 4];
	return 0;
}

void CardKind::write(Core &core, std::uint64_t offset, std::uint32_t value)
{
	constexpr std::size_t indexes_end =
		limits::kEqConsumerIndexes + hw::mthca::eqs * hw::mthca::eq_ci_stride;
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

} // namespace weft::mthca

template class weft::mellanox_icm::Function<weft::mthca::CardKind>;
