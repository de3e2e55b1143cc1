// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Detects that the driver handles events of its ports.
//
// mlx5_ib registers its device, and subscribes to events of its ports afterwards. The driver misses
// events before the subscription, and does not read the changed state later. No command shows the
// subscription. Therefore the card sends an event which states that the P_Key table has changed: a
// driver that has subscribed reads the table. Linux reads it twice, for its cache and for QP1. The
// event has no other effect if the table is the same as before.
//
// The event that a port is active is repeated only if the driver may have missed it: ib_ipoib joins
// its groups again at each such event, and drops packets meanwhile. Therefore a P_Key event also
// precedes an event that a port is active. A driver that reacts to the former receives the latter.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "base/loop.hpp"
#include "cards/mlx5/event_queue.hpp"

namespace weft::mlx5
{

class Subscription
{
public:
	// A set of ports: bit 0 is port 1.
	using PortSet = std::uint32_t;

	// @active returns the active ports. @found is called once, when the driver has reacted to
	// an event, with the ports that were active before that event.
	Subscription(Loop &loop, EventQueues &events, std::function<PortSet()> active,
		     std::function<void(PortSet)> found)
	    : events_(events), active_(std::move(active)), found_(std::move(found)),
	      next_event_(loop, [this] { ask(); })
	{
	}

	// QP1 can send. The driver reads the P_Key table once for it, before it subscribes.
	void qp1_ready();
	// A MAD has read @block of the P_Key table of port 1.
	void pkeys_read(std::uint32_t block);
	// A port has become active, and its event follows.
	void port_activates(unsigned number);
	// The card has been closed, or its driver has destroyed QP1.
	void stop();

private:
	enum class State : std::uint8_t { idle, qp1_reads_table, asking, found };
	void ask();
	void send_event();
	void arm_timer();

	EventQueues &events_;
	const std::function<PortSet()> active_;
	const std::function<void(PortSet)> found_;
	State state_ = State::idle;
	// The driver sends one MAD for each entry. Counted are those for entries of the last block,
	// since QP1 was ready or since the last event.
	unsigned reads_ = 0;
	// The value of reads_ when the timer last expired.
	unsigned reads_at_last_timer_ = 0;
	// The ports that were active before the last event.
	PortSet earlier_ = 0;
	// The last event was sent because ports became active.
	bool precedes_activation_ = false;
	unsigned asked_ = 0;
	Timer next_event_;
};

} // namespace weft::mlx5
