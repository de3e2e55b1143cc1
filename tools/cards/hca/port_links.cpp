// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/port_links.hpp"

#include <utility>

#include "net/fabric/mad_packet.hpp"

namespace weft::hca
{

PortLinks::PortLinks(Loop &loop, const std::vector<std::unique_ptr<CardPort>> &ports,
		     Transport &transport, SubnetAgent &subnet, ProgramPorts &programs)
    : ports_(ports), transport_(transport), subnet_(subnet), programs_(programs)
{
	for (const auto &owned : ports) {
		CardPort &port = *owned;
		programs_.port(port.number()).connect(loop, port, transport, subnet);
		links_.push_back(std::make_unique<PortLink>(
			loop, port.fabric_port(),
			PortLink::Handlers{
				.packet =
					[this, &port](fabric::Packet &&packet) {
						transport_.receive(port.number(),
								   std::move(packet));
					},
				.credit =
					[this, &port](std::uint8_t vl) {
						transport_.credit_available(port.number(), vl);
						programs_.port(port.number()).credit_available(vl);
					},
				.link = [this,
					 &port](bool was_down) { link_changed(port, was_down); },
			}));
	}
}

PortLinks::~PortLinks()
{
	links_.clear();
	for (const auto &port : ports_)
		programs_.port(port->number()).disconnect();
}

void PortLinks::drop()
{
	for (auto &link : links_)
		link->drop();
	for (const auto &port : ports_)
		programs_.port(port->number()).drop();
}

void PortLinks::close(CardPort &port)
{
	if (!port.opened())
		return;
	port.set_opened(false);
	port.fabric_port().disable();
	subnet_.port_closed(port);
}

void PortLinks::link_changed(CardPort &port, bool was_down)
{
	if (port.opened())
		subnet_.link_changed(port, was_down);
	// Credits that returned while the port had no link were not reported.
	for (std::uint8_t vl = 0; vl < fabric::Port::kVls; ++vl)
		programs_.port(port.number()).credit_available(vl);
}

void PortLinks::order(unsigned number, fabric::LinkOrder order)
{
	const CardPort &port = *ports_[number - 1];
	if (!port.opened())
		return;
	links_[number - 1]->later([&port, order] {
		if (port.opened())
			fabric::carry_out(order, port.fabric_port(), port.info());
	});
}

void PortLinks::send_to_manager(unsigned number, const ib::Smp &smp)
{
	const CardPort &port = *ports_[number - 1];
	fabric::MadAddress address;
	address.slid = port.lid();
	address.dlid = port.info().sm_lid;
	address.sl = port.info().sm_sl();
	fabric::Packet packet =
		fabric::make_mad_packet(address, reinterpret_cast<const ib::Mad &>(smp));
	// A subnet manager on this port is reached without the link. A packet without a credit is
	// dropped, because traps are repeated.
	if (port.owns_lid(address.dlid))
		transport_.receive(number, std::move(packet));
	else
		port.fabric_port().send(packet);
}

} // namespace weft::hca
