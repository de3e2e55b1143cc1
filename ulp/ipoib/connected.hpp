/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Manages the resources that the connections of an interface in connected mode share (RFC 4755): a
 * CQ with its NAPI, an SRQ with its buffers, and the listener.
 *
 * All functions are called with the rtnl lock held, under which the interface changes its state,
 * unless stated otherwise.
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
	/*
	 * Each state has the resources of the previous one. Documentation/ipoib.rst has a diagram.
	 */
	enum class State : u8 {
		none, /* nothing is allocated, as in datagram mode */
		made, /* CQ and SRQ exist; all buffers are posted to the SRQ */
		/* completions are polled; connections can be established in both directions */
		running,
	};

	Connected(DestinationTable &destinations, kern::DelayedWork &recovery_work)
	    : faults_(recovery_work), active_(destinations, work_)
	{
	}
	~Connected() { kern_assert(state() == State::none); }

	/* Sets the network device. Context: process; called once. */
	void attach(net_device *dev);
	/* Removes NAPI from the device, which is not used afterwards. State: none. */
	void detach();
	/*
	 * Returns true if the port supports connected mode: the device has SRQs, and the port has a
	 * CM.
	 */
	static bool possible(const ib_device *device, u32 port_num);

	State state() const { return bring_up_.state(); }
	/*
	 * Starts connected mode with the given resources; their CQ and SRQ are created here.
	 * Errors: ENOMEM, those of the verbs and of the CM.
	 */
	kern::Result<> start(const ConnectionResources &resources);
	/* Closes all connections; nothing is sent any more. */
	void stop() { kern::ignore(bring_up_.to(State::none)); }
	u32 take_faults() { return faults_.take(); }

	/* See ActiveConnections::send(). State: running. */
	ActiveConnections::Outcome send(Destination &destination, sk_buff *skb, u32 datagram_bytes)
	{
		return active_.send(destination, skb, datagram_bytes);
	}
	/*
	 * Ends all active connections, because the peers' addresses are not valid any more.
	 * Context: any but hard interrupt.
	 */
	void end_active() { active_.end_all(); }
	/*
	 * Ends idle connections. The interface calls this every 30 seconds. Context: any but hard
	 * interrupt.
	 */
	void end_idle();

	/* Context: any. */
	const ReceiveCounters &received() const { return receive_.counters(); }
	const ActiveConnections &active() const { return active_; }
	PassiveConnections &passive() { return passive_; }
	/* Return nullptr if it does not exist. */
	ib_srq *srq() const { return resources_.srq; }
	ib_cq *cq() const { return resources_.cq; }
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
	void end_connections();
	void queue_work() { work_.queue(); }
	bool handle_completion(const ib_wc &wc, int budget);
	static int on_request(ib_cm_id *id, const ib_cm_event *event);

	net_device *dev_ = nullptr;
	Faults faults_;
	ConnectionResources resources_{};
	ib_cm_id *listener_ = nullptr;
	kern::Work work_{kern::method<&Connected::end_connections>, this};
	/* Minimum time between two rounds in which passive connections are destroyed. */
	static constexpr u64 round_interval_ns = 100'000'000;
	u64 next_round_ = 0; /* used only by the work item */
	kern::Atomic<bool> without_delay_{false};
	kern::DelayedWork delayed_work_{kern::method<&Connected::queue_work>, this};
	LargeReceive receive_;
	ActiveConnections active_;
	PassiveConnections passive_{work_};
	ib_wc wc_[16];
	BringUp<Connected, State> bring_up_{*this};
};

} // namespace ipoib
