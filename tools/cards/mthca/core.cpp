// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/core.hpp"

namespace weft::mthca
{

namespace
{

std::vector<std::unique_ptr<CardPort>> make_ports(const CardConfig &config)
{
	std::vector<std::unique_ptr<CardPort>> ports;
	for (unsigned i = 0; i < config.ports.size(); ++i)
		ports.push_back(std::make_unique<CardPort>(
			i + 1, config.node_guid + i + 1, *config.ports[i],
			CardPort::Limits{.mtu = ib::Mtu::mtu_2048,
					 .pkeys = 1u << limits::kLogPkeys}));
	return ports;
}

fabric::NodeIdentity make_identity(const CardConfig &config)
{
	return {.node_guid = config.node_guid,
		.system_image_guid = config.node_guid,
		.vendor_id = 0x0002c9, // Mellanox
		.device_id = hw::mthca::pci_device_id,
		.revision = 0xa0,
		.description = config.name + " InfiniHost III"};
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
		.reserved_lkey = 0,
		.members = MulticastTable::Members::marked},
	       make_transport, pci_host, counted, broken, host_programs)
{
}

Core::~Core()
{
	close();
}

void Core::break_down(std::uint32_t code)
{
	// Drivers check all words of the buffer.
	error_buffer[limits::kBreakdownDword] = code;
}

void Core::raise_port_event(unsigned number)
{
	if ((!trusted || programs.port(number).managing()) &&
	    ports[number - 1]->info().state() == ib::PortState::active)
		events.raise_port_state(number, true);
}

} // namespace weft::mthca
