// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/world.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "base/memory_mapping.hpp"
#include "fabric/switch.hpp"
#include "sm/subnet_manager.hpp"
#include "vfio-user/server.hpp"
#include "vhost-user/server.hpp"

namespace weft::weftd
{

namespace
{

std::unique_ptr<pci::Server> make_server(const LabHost &config, Loop &loop, PciDevice &card,
					 std::size_t most_mappings)
{
	switch (config.bus) {
	case LabBus::VfioUser:
		return std::make_unique<vfio_user::Server>(loop, card, config.name, most_mappings);
	case LabBus::VhostUser:
		return std::make_unique<vhost_user::Server>(loop, card, config.name);
	}
	throw std::logic_error("bus of a host");
}

} // namespace

Host::Host(const LabHost &config, std::filesystem::path socket_path,
	   std::vector<fabric::Port *> fabric_ports, std::size_t most_mappings)
    : name(config.name), guid(config.guid), socket(std::move(socket_path)), boot(config.boot),
      ports(std::move(fabric_ports)), loop(config.name),
      card(config.model->make({config.name, config.guid, ports, config.trusted, config.flags}, loop)),
      server(make_server(config, loop, card->function(), most_mappings))
{
	server->listen(socket);
}

World::World(const Lab &lab, const std::filesystem::path &socket_directory) : fabric_(lab.seed)
{
	for (const auto &config : lab.switches)
		fabric_.add_switch(config);
	std::vector<std::vector<fabric::Port *>> ports;
	for (const LabHost &host : lab.hosts) {
		auto &own = ports.emplace_back();
		for (unsigned number = 1; number <= host.ports; ++number)
			own.push_back(&fabric_.add_port(fmt::format("{}/{}", host.name, number)));
	}
	fabric::Port *sm_port =
		lab.sm_enabled ? &fabric_.add_port(fmt::format("{}/1", kSmNode)) : nullptr;
	for (const LabLink &link : lab.links)
		fabric_.connect(port_of(link.ends[0], link.where),
				port_of(link.ends[1], link.where), link.config);
	for (std::size_t i = 0; i < lab.hosts.size(); ++i)
		if (!lab.hosts[i].trusted)
			for (fabric::Port *port : ports[i])
				restrict(*port);
	if (sm_port)
		subnet_manager_ = std::make_unique<sm::SubnetManager>(*sm_port, lab.sm);
	// None can take another's share of the process's mappings.
	const std::size_t most_mappings = std::min<std::size_t>(
		vfio_user::kMaxDmaMaps, kMostLentMappings / std::max<std::size_t>(lab.hosts.size(), 1));
	for (std::size_t i = 0; i < lab.hosts.size(); ++i)
		hosts_.push_back(std::make_unique<Host>(
			lab.hosts[i], socket_directory / lab.hosts[i].socket, std::move(ports[i]),
			most_mappings));
}

World::~World() = default;

fabric::Port &World::port_of(const LabEnd &end, const std::string &where)
{
	fabric::Port *port = fabric_.find_port(fmt::format("{}/{}", end.node, end.port));
	if (!port)
		throw LabError(
			fmt::format("{}: there is no port {}/{}", where, end.node, end.port));
	return *port;
}

void World::restrict(const fabric::Port &port)
{
	const fabric::Port *const peer = port.peer();
	if (!peer)
		return;
	for (fabric::Switch *sw : fabric_.switches())
		for (unsigned number = 1; number <= sw->port_count(); ++number)
			if (&sw->port(number) == peer)
				return sw->restrict_management(number);
	throw LabError(fmt::format("{} is not trusted, so it must be linked to a switch, not to {}",
				   port.name(), peer->name()));
}

fabric::Link &World::find_link(std::string_view name) const
{
	if (fabric::Link *link = fabric_.find_link(name))
		return *link;
	if (const fabric::Port *port = fabric_.find_port(name)) {
		if (!port->link())
			throw std::invalid_argument(fmt::format("port {} has no link", name));
		return *port->link();
	}
	const std::string prefix = fmt::format("{}/", name);
	fabric::Link *found = nullptr;
	for (fabric::Link *link : fabric_.links()) {
		if (!link->end(0).name().starts_with(prefix) &&
		    !link->end(1).name().starts_with(prefix))
			continue;
		if (found)
			throw std::invalid_argument(fmt::format(
				"{} has several links: name a port, as in {}1", name, prefix));
		found = link;
	}
	if (!found)
		throw std::invalid_argument(
			fmt::format("there is no link, port or node '{}'", name));
	return *found;
}

} // namespace weft::weftd
