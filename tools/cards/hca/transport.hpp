// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Calls of the control plane to the transport engine, all on the card's loop. The engine gets a
// Context when it is created, and calls back through it.
#pragma once

#include <cstdint>
#include <memory>

#include "cards/hca/queue_pair.hpp"

namespace weft::fabric
{
class Packet;
}

namespace weft::hca
{

struct Context;

class Transport
{
public:
	virtual ~Transport() = default;

	// RST2INIT made @qp. The values that the guest wrote into it are checked for range (log
	// sizes, port number, encodings), but keys, PDs, CQ and SRQ numbers may name objects that
	// do not exist (any more) at any time.
	virtual void qp_created(QueuePair &qp) = 0;
	// A command moved @qp from @from to qp.state: INIT, RTR, RTS, SQ draining, ERR. On a
	// command that keeps the state (RTS2RTS, INIT2INIT, SQD2SQD) @from is qp.state, and
	// attributes may have changed. To ERR: flush. To SQ draining: stop, and when all that was
	// started is acknowledged set qp.state to sqd and raise the event if qp.sqd_event.
	virtual void qp_changed(QueuePair &qp, QpState from) = 0;
	// 2RST, or the card is being reset: forget @qp at once. No completion, no event; after the
	// return nothing refers to it.
	virtual void qp_destroyed(QueuePair &qp) = 0;
	virtual QueuePairProgress progress(const QueuePair &qp) const = 0;

	// The send doorbell of @qp was rung, from the right UAR page.
	virtual void send_doorbell(QueuePair &qp) = 0;
	// The memory key with this index of the table does not stand any more for what it stood for;
	// or any key may not. When the call returns no packet under way, on whatever thread, will
	// read memory by it: the guest may have its pages back.
	virtual void key_gone(std::uint32_t index) = 0;
	virtual void keys_changed() = 0;

	// A packet came in on @port (1 or 2); its CRCs are right.
	virtual void receive(unsigned port, fabric::Packet &&packet) = 0;
	// A refused send on @port's @vl may be tried again.
	virtual void credit_available(unsigned port, std::uint8_t vl) = 0;
	// Addresses or state of @port changed.
	virtual void port_changed(unsigned port) = 0;
	// The guest has made room in an event queue.
	virtual void events_wanted() = 0;
};

// Makes the engine of a card. @context outlives it.
std::unique_ptr<Transport> make_transport(Context &context);

} // namespace weft::hca
