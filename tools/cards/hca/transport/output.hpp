// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Sends packets out of the card: to the fabric, back into the card itself, or both.
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
	 * @port: from 1
	 * @packet: left alone if the answer is no_credit; gone otherwise
	 * @loopback: keep it inside the card, whatever its address
	 *
	 * A packet for the port itself is looped back; a multicast one goes both ways. A packet
	 * that finds its port down is dropped: done.
	 */
	fabric::Sent send(unsigned port, fabric::Packet &packet, bool loopback = false);

	/* Packets that came back; taken by the engine. */
	struct Looped {
		unsigned port;
		fabric::Packet packet;
	};
	std::deque<Looped> &looped() { return looped_; }
	/*
	 * A sender was refused because too many packets were on their way back: since the last
	 * take, and the last one.
	 */
	bool take_starved() { return std::exchange(starved_, false); }
	bool refused_inside() const { return refused_inside_; }

private:
	/* Limit of packets that wait on their way back: as many as a port has credits. */
	static constexpr std::size_t kLoopedMax = 256;

	Context &card_;
	std::deque<Looped> looped_;
	bool starved_ = false;
	bool refused_inside_ = false;
};

} // namespace weft::hca::transport
