/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connected mode of an interface (RFC 4755): the resources that its connections share: a CQ with
 * its NAPI, an SRQ with its buffers, and the listener.
 *
 * Context: that of the interface's state machine (rtnl lock), unless stated otherwise.
 */
#pragma once

#include "active.hpp"
#include "fault.hpp"
#include "bring_up.hpp"
#include "large_receive.hpp"
#include "passive.hpp"

namespace ipoib
{

class Connected : public kern::Napi<Connected>
{
public:
	/* Each state has the resources of the one before. Documentation/ipoib.rst has a diagram. */
	enum class State : u8 {
		none,    /* nothing is allocated, as in datagram mode */
		made,    /* CQ and SRQ, which has all its buffers */
		running, /* completions are polled, peers may connect, and are connected to */
	};

	Connected(DestinationTable &destinations, kern::DelayedWork &recovery_work)
	    : faults_(recovery_work), active_(destinations, work_)
	{
	}
	~Connected() { kern_assert(state() == State::none); }

	/* Must be called once. */
	void place(net_device *dev);
	/* The device will not be used any more. State: none. */
	void displace();
	/* True if connections are possible on the port, in both directions. */
	static bool possible(const ib_device *device, u32 port_num);

	State state() const { return bring_up_.state(); }
	/* room: without CQ and SRQ. Errors: ENOMEM, those of the verbs, of the CM. */
	kern::Result<> start(const ConnectionLimit &room);
	/* Closes all connections; nothing is sent any more. */
	void stop() { kern::ignore(bring_up_.to(State::none)); }
	u32 take_faults() { return faults_.take(); }

	/* Context: as of the function of the same name of ActiveConnections. State: running. */
	ActiveConnections::Outcome send(Destination &destination, sk_buff *skb, u32 datagram_bytes)
	{
		return active_.send(destination, skb, datagram_bytes);
	}
	/*
	 * Ends all active connections, because the addresses of peers have become invalid. Context:
	 * any but hard interrupt.
	 */
	void end_active() { active_.end_all(); }
	/* Ends idle connections; called every 30 seconds. Context: any but hard interrupt. */
	void end_idle();

	/* Context: any. */
	const ReceiveCounters &received() const { return receive_.counters(); }
	const ActiveConnections &active() const { return active_; }
	PassiveConnections &passive() { return passive_; }
	/* Returns nullptr while it is not allocated. */
	ib_srq *srq() const { return room_.srq; }
	ib_cq *cq() const { return room_.cq; }
	const PassiveConnections &passive() const { return passive_; }
	int poll(int budget);

private:
	friend class BringUp<Connected, State>;

	kern::Result<> step_up(State to);
	State step_down(State from);
	kern::Result<> make();
	void unmake();
	kern::Result<> run();
	void halt();
	void end_what_is_over();
	void end_the_others() { work_.queue(); }
	bool take(const ib_wc &wc, int budget);
	static int on_request(ib_cm_id *id, const ib_cm_event *event);

	net_device *dev_ = nullptr;
	Faults faults_;
	ConnectionLimit room_{};
	ib_cm_id *listener_ = nullptr;
	kern::Work work_{kern::method<&Connected::end_what_is_over>, this};
	/* The minimum time between two rounds that end passive connections. */
	static constexpr u64 round_interval_ns = 100'000'000;
	u64 next_round_ = 0; /* the work's */
	kern::Atomic<bool> hurries_{false};
	kern::DelayedWork later_{kern::method<&Connected::end_the_others>, this};
	LargeReceive receive_;
	ActiveConnections active_;
	PassiveConnections passive_{work_};
	ib_wc wc_[16];
	BringUp<Connected, State> bring_up_{*this};
};

} // namespace ipoib
