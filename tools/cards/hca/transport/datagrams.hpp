// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements datagrams: UD (IBA 9.8.3), and the special QPs, whose packets the driver writes
 * itself.
 */
#pragma once

#include <cstdint>

#include "cards/hca/transport/completions.hpp"
#include "cards/hca/transport/data_mover.hpp"
#include "cards/hca/transport/qp.hpp"

namespace weft::hca::transport
{

class Engine;

class Datagrams
{
public:
	explicit Datagrams(Engine &engine);

	/* Sends posted requests within a budget. Returns true if there is more to send at once. */
	bool advance(Qp &qp, unsigned budget);

	/*
	 * Handles a received datagram. It is dropped and counted if a check fails or there is no
	 * receive.
	 */
	void receive(Qp &qp, unsigned port, const fabric::Packet &packet);

private:
	/* Result of a step. */
	enum class Step : std::uint8_t { done, nothing_posted, failed };

	Step take_next(Qp &qp);
	Step send_segment(Qp &qp);
	Syndrome send(Qp &qp, const SendRequest &request);
	Syndrome begin_large(Qp &qp);
	Syndrome send_whole(Qp &qp, const SendRequest &request);
	Syndrome address(const Qp &qp, const SendRequest &request, packet::Headers &headers) const;
	unsigned mtu(const Qp &qp) const;
	void fail_send(Qp &qp, std::uint16_t index, Syndrome syndrome);
	/*
	 * Handles a receive that is too short for the datagram. @due is next_wqe before the receive
	 * was taken.
	 */
	void too_long(Qp &qp, std::uint16_t due);
	void transmit(Qp &qp, packet::Headers &headers, fabric::Payload payload);

	Engine &engine_;
	DataMover mover_;
	/* The current request; a member so that its memory is reused. */
	SendWork work_;
	ReceiveWork receive_;
};

} // namespace weft::hca::transport
