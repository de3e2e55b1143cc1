// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends packets that the transport engine has built: to the fabric, back to the card itself
 * (loopback), or both.
 */
#pragma once

#include <cstdint>
#include <deque>
#include <utility>

#include "cards/hca/context.hpp"
#include "net/fabric/packet.hpp"
#include "net/fabric/port.hpp"

namespace weft::hca::transport
{

class Output
{
public:
	explicit Output(Context &card) : card_(card) {}

	/**
	 * send() - send a packet
	 * @port: number of the port, from 1 on
	 * @packet: unchanged if the result is no_credit; otherwise not to be used afterwards
	 * @loopback: loop the packet back inside the card, independent of its address
	 *
	 * A packet for the port itself is looped back; a multicast packet is looped back and sent.
	 * If the port is not active, other packets and multicast packets are dropped, except on
	 * VL 15, and the result is link_down.
	 */
	fabric::Sent send(unsigned port, fabric::Packet &packet, bool loopback = false);

	/* Looped packets, which the engine processes. */
	struct Looped {
		unsigned port;
		fabric::Packet packet;
	};
	std::deque<Looped> &looped() { return looped_; }
	/*
	 * Return whether a sender was refused because too many looped packets were queued: since
	 * the last call, and in the last send.
	 */
	bool take_starved() { return std::exchange(starved_, false); }
	bool refused_inside() const { return refused_inside_; }

private:
	/* Limit of queued looped packets, which equals the number of a port's credits. */
	static constexpr std::size_t kLoopedMax = 256;

	Context &card_;
	std::deque<Looped> looped_;
	bool starved_ = false;
	bool refused_inside_ = false;
};

} // namespace weft::hca::transport
