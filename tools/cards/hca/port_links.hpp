// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The links of a card's ports: between the fabric and the card's transport engine and management
// agents.
#pragma once

#include <memory>
#include <vector>

#include "cards/hca/port.hpp"
#include "cards/hca/port_link.hpp"
#include "cards/hca/subnet_agent.hpp"
#include "cards/hca/transport.hpp"

namespace weft::hca
{

class PortLinks
{
public:
	// All that it is given outlives it; packets come until it is destroyed. On the card's loop,
	// as all else.
	PortLinks(Loop &loop, const std::vector<std::unique_ptr<CardPort>> &ports,
		  Transport &transport, SubnetAgent &subnet);

	// Forgets what has come in and was not handed on.
	void drop();
	// The driver has closed @port, if it was open: the link goes down.
	void close(CardPort &port);

	// Requests of the subnet agent (SubnetAgent::Host).
	void order(unsigned port, fabric::LinkOrder order);
	void send_to_manager(unsigned port, const ib::Smp &smp);

private:
	void link_changed(CardPort &port, bool was_down);

	const std::vector<std::unique_ptr<CardPort>> &ports_;
	Transport &transport_;
	SubnetAgent &subnet_;
	std::vector<std::unique_ptr<PortLink>> links_;
};

} // namespace weft::hca
