// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the data path of one card, from doorbells to completions. All of it runs on the card's
 * loop.
 *
 * Work is done in slices with a budget. When a budget is used up, the engine schedules itself again
 * on the loop, so that a register access of the same card never waits long for traffic. A QP that
 * has work is in the run queue. A QP without credit leaves it until the port reports credit.
 */
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "base/loop.hpp"
#include "cards/hca/context.hpp"
#include "cards/hca/transport.hpp"
#include "cards/hca/transport/completions.hpp"
#include "cards/hca/transport/datagrams.hpp"
#include "cards/hca/transport/leases.hpp"
#include "cards/hca/transport/output.hpp"
#include "cards/hca/transport/qp.hpp"
#include "cards/hca/transport/requester.hpp"
#include "cards/hca/transport/responder.hpp"

namespace weft::hca::transport
{

class Engine final : public Transport
{
public:
	explicit Engine(Context &card);
	~Engine() override;

	void qp_created(QueuePair &pair) override;
	void qp_changed(QueuePair &pair, QpState from) override;
	void qp_destroyed(QueuePair &pair) override;
	QueuePairProgress progress(const QueuePair &pair) const override;
	void send_doorbell(QueuePair &pair) override;
	void key_gone(std::uint32_t index) override;
	void keys_changed() override;
	void receive(unsigned port, fabric::Packet &&packet) override;
	void credit_available(unsigned port, std::uint8_t vl) override;
	void port_changed(unsigned port) override;
	void events_wanted() override;

	/* --- used by the other classes of the engine --- */

	Context &card() { return card_; }
	Completions &completions() { return completions_; }
	Output &output() { return output_; }
	Leases &leases() { return leases_; }
	Requester &requester() { return requester_; }
	Responder &responder() { return responder_; }

	/* Schedules the QP's work. */
	void schedule(Qp &qp);
	/*
	 * Calls timed_out() of the QP's requester once at that time. Replaces an earlier deadline.
	 */
	void set_deadline(Qp &qp, TimePoint when);
	void clear_deadline(Qp &qp) { qp.deadline.reset(); }

	/*
	 * Sends a packet of a QP. If there is no credit, keeps the packet and returns false. The
	 * caller must then not create any further packets.
	 */
	bool emit(Qp &qp, fabric::Packet &&packet);

	/*
	 * Stops only the send queue of an unreliable QP, because a request has failed (IBA
	 * 10.3.1.6). Later requests are flushed, the receive queue continues, and SQERR2RTS starts
	 * the send queue again.
	 */
	void stop_send_queue(Qp &qp);
	/*
	 * Raises an event. Peers can make all QPs of a guest fail at once, so an event for which
	 * the guest's event queue has no space is raised when there is space.
	 */
	void raise(Qp &qp, Event event);
	/* Moves a QP to the error state and flushes it. @event, if any, is raised first. */
	void fail(Qp &qp, std::optional<Event> event = std::nullopt);

	/* Count a packet with a P_Key or Q_Key that was refused, and notify the subnet manager. */
	void refuse_pkey(CardPort &port, const packet::Headers &headers);
	void refuse_qkey(CardPort &port, const packet::Headers &headers);

	/* Returns the number of running timers, at most one per QP. */
	std::size_t timers() const { return timers_.size(); }
	/*
	 * Returns the number of multicast packets that have not reached all members, at most
	 * kFanOutsMax.
	 */
	std::size_t fan_outs() const { return fan_outs_.size(); }
	static constexpr std::size_t kFanOutsMax = 256;
	/* Maximum number of timers that are processed before the loop runs other tasks. */
	static constexpr unsigned kSliceTimers = 64;
	/* Maximum number of QPs whose pending events one call of events_wanted() raises. */
	static constexpr unsigned kSliceEvents = 64;

	static Qp *state_of(QueuePair *pair)
	{
		return pair ? static_cast<Qp *>(pair->transport.get()) : nullptr;
	}

private:
	void run();
	void service(Qp &qp);
	void timers_due();
	bool report(Qp &qp);
	void arm_timer();
	fabric::Sent send_packet(const Qp &qp, fabric::Packet &packet);
	bool send_waiting(Qp &qp);
	void wait_for_credit(Qp &qp);
	void unblock(std::size_t lane);
	void flush(Qp &qp);
	void poll_error_state(Qp &qp);
	void become_quiet(Qp &qp);
	void poll_quiet();
	void deliver(unsigned port, fabric::Packet &packet, bool looped_back);
	void deliver_multicast(unsigned port, fabric::Packet &packet, bool looped_back);
	void begin_fan_out();
	void fan_out();
	/*
	 * Offers a packet for QP0 or QP1 to programs of the host. Returns true if a program takes
	 * it.
	 */
	bool offered(unsigned port, const fabric::Packet &packet);
	void deliver_management(unsigned port, fabric::Packet &packet);
	void deliver_to(Qp &qp, unsigned port, fabric::Packet &packet);

	Context &card_;
	Completions completions_;
	Output output_;
	Leases leases_{card_.memory};
	Requester requester_;
	Responder responder_;
	Datagrams datagrams_;
	QpList runnable_;
	/*
	 * QPs whose packet was refused, by the resource for which they wait: space for looped
	 * packets in the card, or a credit of a port's VL.
	 */
	static constexpr std::size_t kLaneInside = 0;
	static constexpr unsigned kPortsMax = 2;
	static constexpr std::size_t lane_of(unsigned port, std::uint8_t vl)
	{
		return 1 + (port - 1) * fabric::Port::kVls + vl % fabric::Port::kVls;
	}
	std::array<QpList, 1 + kPortsMax * fabric::Port::kVls> blocked_;
	/* QPs with events for which the guest's event queue had no space. */
	QpList pending_events_;
	/* Ordered by time; at most one entry for each QP, at Qp::timer. */
	std::set<std::pair<TimePoint, Qp *>> timers_;
	/* True if more timers were due than one slice processes. run() then continues. */
	bool timers_left_ = false;
	/*
	 * QPs that have been in the error state for a while without a new receive. No doorbell
	 * reports such a receive, so the card polls their queues, with one timer for all. to_poll_
	 * contains those that are left in the current round.
	 */
	QpList quiet_;
	QpList to_poll_;
	bool polling_quiet_ = false;
	/*
	 * Multicast packets that have not reached all members, in order, at most kFanOutsMax. They
	 * hold no link credit, because replication to many members must not stop the link. While
	 * there are any, looped packets are not processed.
	 */
	struct FanOut {
		unsigned port;
		bool looped_back;
		fabric::Packet packet;
	};
	std::deque<FanOut> fan_outs_;
	/*
	 * The members of the first packet's group, and the index of the next member to receive it.
	 */
	std::vector<Groups::Member> members_;
	std::size_t next_member_ = 0;
	Wakeup wakeup_;
	Timer timer_;
	Timer quiet_timer_;
};

} // namespace weft::hca::transport
