// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// A lab that runs: the fabric, the cards on it with their servers, the subnet manager.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/loop.hpp"
#include "cards/card.hpp"
#include "fabric/fabric.hpp"
#include "pci/server.hpp"
#include "weftd/lab.hpp"

namespace weft::sm
{
class SubnetManager;
}

namespace weft::weftd
{

// A host as the fabric sees it: one card, which a machine may or may not have plugged in.
struct Host {
	Host(const LabHost &config, std::filesystem::path socket_path,
	     std::vector<fabric::Port *> fabric_ports, std::size_t most_mappings);

	const std::string name;
	const ib::Guid guid;
	const std::filesystem::path socket;
	const LabBoot boot;
	const std::vector<fabric::Port *> ports;
	Loop loop;
	const std::unique_ptr<cards::Card> card;
	const std::unique_ptr<pci::Server> server;
};

class World
{
public:
	// Builds @lab and listens for machines in @socket_directory. Throws LabError for what only
	// shows in building, std::system_error for sockets.
	World(const Lab &lab, const std::filesystem::path &socket_directory);
	~World();
	World(const World &) = delete;
	World &operator=(const World &) = delete;

	fabric::Fabric &fabric() { return fabric_; }
	const std::vector<std::unique_ptr<Host>> &hosts() const { return hosts_; }
	// Null if the lab has none.
	sm::SubnetManager *subnet_manager() { return subnet_manager_.get(); }

	// The link that @name means: a link's own name ("node1/1-switch1/1"), a port ("node1/1"),
	// or a node that has one link. Throws std::invalid_argument with the reason.
	fabric::Link &find_link(std::string_view name) const;

private:
	// Has the switch that faces an untrusted host's port pass no management of its.
	void restrict(const fabric::Port &port);
	fabric::Port &port_of(const LabEnd &end, const std::string &where);

	fabric::Fabric fabric_;
	std::vector<std::unique_ptr<Host>> hosts_;
	std::unique_ptr<sm::SubnetManager> subnet_manager_;
};

} // namespace weft::weftd
