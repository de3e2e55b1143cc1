// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The data path of one card: everything between a doorbell and a completion.
 *
 * All of it runs on the card's loop. Work is done in slices with a budget; when one is used up, the
 * engine has its loop call it again, so that a protocol request of the same card never waits long
 * behind traffic. A QP that has work is in the run queue; a QP without credit leaves it until the
 * port reports credit.
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

	/* --- for the parts of the engine --- */

	Context &card() { return card_; }
	Completions &completions() { return completions_; }
	Output &output() { return output_; }
	Leases &leases() { return leases_; }
	Requester &requester() { return requester_; }
	Responder &responder() { return responder_; }

	/* Have the QP's work done soon. */
	void schedule(Qp &qp);
	/* Call timed_out() of the QP's requester at that time, once; replaces an earlier wish. */
	void set_deadline(Qp &qp, TimePoint when);
	void clear_deadline(Qp &qp) { qp.deadline.reset(); }

	/*
	 * Send a packet of a QP. If there is no credit it is kept, and the caller is to generate no
	 * more: false then.
	 */
	bool emit(Qp &qp, fabric::Packet &&packet);

	/*
	 * A request of an unreliable QP has failed: only its send queue stops, IBA 10.3.1.6.
	 * Requests behind it are flushed, receives go on, and SQERR2RTS starts the queue again.
	 */
	void stop_send_queue(Qp &qp);
	/*
	 * Tell the guest of an event. As many of its QPs as it has may fail at once, by their
	 * peers' doing: one that finds no room in the guest's queue is told when there is some.
	 */
	void raise(Qp &qp, Event event);
	/* Move a QP to the error state and flush it. @event: raised first, if there is one. */
	void fail(Qp &qp, std::optional<Event> event = std::nullopt);

	/* Count a packet that a port's P_Keys or a QP's Q_Key refuse, and tell the manager. */
	void refuse_pkey(CardPort &port, const packet::Headers &headers);
	void refuse_qkey(CardPort &port, const packet::Headers &headers);

	/* Timers that run: never more than one a QP. */
	std::size_t timers() const { return timers_.size(); }
	/* Multicast packets that have not reached all members: no more than so many. */
	std::size_t fan_outs() const { return fan_outs_.size(); }
	static constexpr std::size_t kFanOutsMax = 256;
	/* Timers that are due and looked at before other work gets its turn. */
	static constexpr unsigned kSliceTimers = 64;
	/* Events that a guest is told when it has made room for any. */
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
	 * QPs whose packet was refused, by what they wait for: room on the way back into the card,
	 * or a credit of a port's VL.
	 */
	static constexpr std::size_t kLaneInside = 0;
	static constexpr unsigned kPortsMax = 2;
	static constexpr std::size_t lane_of(unsigned port, std::uint8_t vl)
	{
		return 1 + (port - 1) * fabric::Port::kVls + vl % fabric::Port::kVls;
	}
	std::array<QpList, 1 + kPortsMax * fabric::Port::kVls> blocked_;
	/* QPs with events for which there was no room. */
	QpList untold_;
	/* Ordered by time; one a QP, at Qp::timer. */
	std::set<std::pair<TimePoint, Qp *>> timers_;
	/* More of them are due than one slice took: run() goes on. */
	bool timers_left_ = false;
	/*
	 * QPs that have been in the error state for a while without a new receive. No doorbell
	 * reports one that is posted there, so the card polls their queues, by one timer for all.
	 * to_poll_: those that the round under way has not reached.
	 */
	QpList quiet_;
	QpList to_poll_;
	bool polling_quiet_ = false;
	/*
	 * Multicast packets that have not reached all members, in order; kFanOutsMax at the most.
	 * They hold no credit of the wire: one that serves many members must not stop the link.
	 * While there are any, none is taken that came back from the card itself.
	 */
	struct FanOut {
		unsigned port;
		bool looped_back;
		fabric::Packet packet;
	};
	std::deque<FanOut> fan_outs_;
	/* The members of the first, and the next that it goes to. */
	std::vector<Groups::Member> members_;
	std::size_t next_member_ = 0;
	Wakeup wakeup_;
	Timer timer_;
	Timer quiet_timer_;
};

} // namespace weft::hca::transport
