// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Connects a card's ports to the links of the fabric. Received packets are passed to the card's
// transport engine, link changes to its subnet management agent, and returned credits to the engine
// and to programs outside the guest that use the port (weft attach).
#pragma once

#include <memory>
#include <vector>

#include "cards/hca/port.hpp"
#include "cards/hca/port_link.hpp"
#include "cards/hca/program_ports.hpp"
#include "cards/hca/subnet_agent.hpp"
#include "cards/hca/transport.hpp"

namespace weft::hca
{

class PortLinks
{
public:
	// All arguments must outlive this object. Packets are delivered until it is destroyed. Used
	// only on the card's loop.
	PortLinks(Loop &loop, const std::vector<std::unique_ptr<CardPort>> &ports,
		  Transport &transport, SubnetAgent &subnet, ProgramPorts &programs);
	~PortLinks();
	PortLinks(const PortLinks &) = delete;
	PortLinks &operator=(const PortLinks &) = delete;

	// Discards packets that have arrived and were not delivered.
	void drop();
	// Called when the driver has closed @port. Takes its link down if it was open.
	void close(CardPort &port);

	// Executes a request of the subnet agent (SubnetAgent::Host).
	void order(unsigned port, fabric::LinkOrder order);
	void send_to_manager(unsigned port, const ib::Smp &smp);

private:
	void link_changed(CardPort &port, bool was_down);

	const std::vector<std::unique_ptr<CardPort>> &ports_;
	Transport &transport_;
	SubnetAgent &subnet_;
	ProgramPorts &programs_;
	std::vector<std::unique_ptr<PortLink>> links_;
};

} // namespace weft::hca
