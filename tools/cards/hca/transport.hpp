// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the functions of the transport engine that a card's control plane calls, all on the
// card's loop. The engine gets a Context when it is created, and calls the card through it.
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

	// Called when RST2INIT has created @qp. The guest's values in it are in range (log sizes,
	// port number, encodings), but the keys, PDs, CQs and SRQs may not exist, now or later.
	virtual void qp_created(QueuePair &qp) = 0;
	// Called when a command has moved @qp from @from to qp.state: INIT, RTR, RTS, SQ draining,
	// ERR. If the command keeps the state (RTS2RTS, INIT2INIT, SQD2SQD), @from is qp.state, and
	// attributes may have changed. In ERR, the engine flushes requests. In SQ draining, it
	// starts no further requests. When all started ones are acknowledged, it sets qp.state to
	// sqd, and raises the event if qp.sqd_event is set.
	virtual void qp_changed(QueuePair &qp, QpState from) = 0;
	// Called for 2RST, and for a reset of the card. Drops @qp at once, without completions or
	// events; only the pending acknowledgement is sent. No reference to it may remain after the
	// return.
	virtual void qp_destroyed(QueuePair &qp) = 0;
	virtual QueuePairProgress progress(const QueuePair &qp) const = 0;

	// Called when the send doorbell of @qp was rung on its own UAR page.
	virtual void send_doorbell(QueuePair &qp) = 0;
	// key_gone() is called when the memory key with this index of the table was destroyed or
	// changed, and keys_changed() when any key may have been. After the return, no packet in
	// flight reads memory of these keys on any thread, because the guest may then reuse the
	// pages.
	virtual void key_gone(std::uint32_t index) = 0;
	virtual void keys_changed() = 0;

	// Called with a packet that arrived on @port (1 or 2) with correct CRCs.
	virtual void receive(unsigned port, fabric::Packet &&packet) = 0;
	// Called when a send on @vl of @port that had no credit may be retried.
	virtual void credit_available(unsigned port, std::uint8_t vl) = 0;
	// Called when the addresses or the state of @port have changed.
	virtual void port_changed(unsigned port) = 0;
	// Called when the guest has consumed events, so that an event queue has space again.
	virtual void events_wanted() = 0;
};

// Creates a card's transport engine. @context must outlive it.
std::unique_ptr<Transport> make_transport(Context &context);

} // namespace weft::hca
