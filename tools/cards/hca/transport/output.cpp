// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/output.hpp"

namespace weft::hca::transport
{

fabric::Sent Output::send(unsigned port_number, fabric::Packet &packet, bool loopback)
{
	CardPort *port = card_.port(port_number);
	if (!port)
		return fabric::Sent::link_down;
	ib::Lid dlid = packet.lrh().dlid;
	bool management = packet.lrh().vl() == ib::vl_management;
	bool multicast = ib::lid_is_multicast(dlid);
	bool unicast_here = loopback || port->owns_lid(dlid);

	refused_inside_ = false;
	if (unicast_here || multicast) {
		if (looped_.size() >= kLoopedMax) {
			starved_ = refused_inside_ = true;
			return fabric::Sent::no_credit;
		}
		if (unicast_here) {
			looped_.push_back({port_number, std::move(packet)});
			return fabric::Sent::done;
		}
	}
	if (!management && !port->active())
		return fabric::Sent::link_down;
	fabric::Packet copy = multicast ? packet.clone() : fabric::Packet();
	fabric::Sent sent = port->fabric_port().send(packet);
	if (multicast && sent != fabric::Sent::no_credit)
		looped_.push_back({port_number, std::move(copy)});
	return sent;
}

} // namespace weft::hca::transport
