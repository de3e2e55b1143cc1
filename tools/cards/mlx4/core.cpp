// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/core.hpp"

#include <hw/mlx4/registers.hpp>

#include "cards/mlx4/port_events.hpp"

namespace weft::mlx4
{

namespace
{

std::vector<std::unique_ptr<CardPort>> make_ports(const CardConfig &config)
{
	std::vector<std::unique_ptr<CardPort>> ports;
	for (unsigned i = 0; i < config.ports.size(); ++i)
		ports.push_back(std::make_unique<CardPort>(i + 1, config.node_guid + i + 1,
							   *config.ports[i]));
	return ports;
}

// Drivers interpret it as the chip's revision; 0xa0 would make them disable large sends.
constexpr std::uint32_t kRevision = 0xb0;

fabric::NodeIdentity make_identity(const CardConfig &config)
{
	return {.node_guid = config.node_guid,
		.system_image_guid = config.node_guid,
		.vendor_id = 0x0002c9, // Mellanox
		.device_id = hw::mlx4::pci_device_id,
		.revision = kRevision,
		.description = config.description.empty() ? config.name + " ConnectX-2"
							  : config.description,
		.extended_port_info = true}; // drivers of a QDR port query it
}

} // namespace

hca::ProgramPorts programs_of(const CardConfig &config)
{
	return {make_identity(config), make_ports(config)};
}

Core::Core(const CardConfig &config, const TransportFactory &make_transport, PciHost &pci_host,
	   Activity &counted, Faults &broken, hca::ProgramPorts &host_programs)
    : CoreBase(*this,
	       {.name = config.name,
		.identity = make_identity(config),
		.ports = make_ports(config),
		.trusted = config.trusted,
		.reserved_lkey = limits::kReservedLkey,
		.members = MulticastTable::Members::counted},
	       make_transport, pci_host, counted, broken, host_programs)
{
}

Core::~Core()
{
	close();
}

void Core::reset()
{
	CoreBase::reset();
	semaphore_taken = false;
}

void Core::break_down(std::uint32_t code)
{
	error_buffer[0] = code;
}

void Core::port_info_changed(unsigned number, std::uint32_t changed)
{
	raise_port_info(events, *ports[number - 1], changed);
}

void Core::pkeys_changed(unsigned number, unsigned block, std::uint32_t entries)
{
	raise_pkey_table(events, number, block, entries);
}

void Core::guids_changed(unsigned number, unsigned block, std::uint32_t entries)
{
	raise_guid_info(events, number, block, entries);
}

} // namespace weft::mlx4
