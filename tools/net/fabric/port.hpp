// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines a port, which is one end of a link. A node (card, switch, subnet manager) implements what
 * is behind the port and attaches a PortSink. The fabric owns the Port, which lives as long as the
 * fabric.
 *
 * Threads: send() may be called on any thread, concurrently, and never blocks. Unless a link has a
 * delay or faults, a packet passes through switches on the sender's thread. The methods of a
 * PortSink are therefore called on the threads of other nodes, concurrently, and without locks of
 * the fabric. They must only enqueue the packet and wake their own thread.
 *
 * Flow control: A packet that is sent takes a credit of the receiving port for its VL. The credit
 * returns when the receiver destroys the packet or calls release_credit(). A receiver's queue of
 * packets is therefore bounded by its credits. Without a credit, send() returns no_credit and
 * leaves the packet with the caller, and the caller's sink gets credit_available() once. VL15 has
 * no flow control: the receiver drops and counts packets for which it has no space (IBA 7.9.1).
 *
 * A switch passes most packets on at once, so a packet to a switch only borrows a credit
 * (PortSink::borrows_credits()): Port::send() checks that the switch's port has one, and the credit
 * is taken when the switch, or the link to it, keeps the packet (Packet::keep_credit()). Calls of
 * send() on several threads may check the same credit before one of them takes it. For each call in
 * progress, the switch may therefore keep one packet more than it has credits; the number of free
 * credits is then negative. VL15 is excluded: its packets always take a credit or are dropped.
 */
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "net/fabric/counters.hpp"
#include "net/fabric/packet.hpp"

namespace weft::fabric
{

class Link;
class Port;
class Timeline;

enum class Sent {
	/* The packet was sent or lost on its way; the sender cannot distinguish these. */
	done,
	/* The packet stays with the caller; credit_available() will be called. */
	no_credit,
	/* The link is down: the packet was dropped and counted as a discard. */
	link_down,
};

class PortSink
{
public:
	virtual ~PortSink() = default;
	/*
	 * Called with a packet that has a correct ICRC. The packet holds a credit until it is
	 * destroyed, or borrows one if borrows_credits() returns true.
	 */
	virtual void receive(Packet &&packet) = 0;
	/*
	 * Called when the link has come up (the port's state becomes INIT) or gone down. The
	 * argument is the state at the time of the call; Port::link_up() returns the current one.
	 * If the link retrains, there is a call with false and then one with true. Calls for one
	 * port are serialised. The link's state is locked during the call, so enabling, disabling
	 * or retraining the port within it would deadlock.
	 */
	virtual void link_changed(bool up) = 0;
	/*
	 * For a port that represents a remote one (see Port::withhold()): called after the link's
	 * state was evaluated. If @trained is true, only withhold() keeps the link down. The same
	 * rules apply as for link_changed().
	 */
	virtual void link_settled(bool trained) { static_cast<void>(trained); }
	/* Called when a send() on this VL that returned no_credit may be retried. */
	virtual void credit_available(std::uint8_t vl) { static_cast<void>(vl); }
	/*
	 * Returns true for a switch, which forwards packets with a wrong ICRC. An end port drops
	 * them.
	 */
	virtual bool forwards() const { return false; }
	/*
	 * Returns true for a node that usually passes a packet on within receive(), and calls
	 * Packet::keep_credit() before it keeps a packet for longer. The result must not change
	 * while the node is attached.
	 */
	virtual bool borrows_credits() const { return false; }
};

/* Rate that two connected ports have negotiated; encodings of PortInfo. */
struct LinkRate {
	std::uint8_t width = ib::width_4x;
	std::uint8_t speed = ib::speed_qdr;
	std::uint8_t speed_ext = ib::speed_ext_none;
	bool operator==(const LinkRate &) const = default;
};

/*
 * Widths and speeds that a port has enabled, with the bits of LinkWidthEnabled and the
 * corresponding fields of PortInfo.
 */
struct alignas(4) EnabledRates {
	std::uint8_t widths = 0xff;
	std::uint8_t speeds = 0xf;
	std::uint8_t speeds_ext = 0x1f;
	bool operator==(const EnabledRates &) const = default;
};

/*
 * Returns the best rate that a cable and both its ports support: the greatest width and the fastest
 * speed that they have in common. Returns nothing if there is none; the link then stays down.
 */
std::optional<LinkRate> negotiate(const LinkRate &cable, const EnabledRates &a,
				  const EnabledRates &b);

class Port
{
public:
	static constexpr unsigned kVls = 16;
	static constexpr int kDefaultCredits = 256;

	/* @timeline is the timeline of the port's fabric. */
	Port(std::string name, Timeline &timeline, int credits_per_vl = kDefaultCredits);
	Port(const Port &) = delete;
	Port &operator=(const Port &) = delete;
	~Port();

	const std::string &name() const { return name_; }
	Timeline &timeline() const { return timeline_; }

	/* Connects a node to the port, which can have one node. The port is initially disabled. */
	void attach(PortSink &sink);
	/*
	 * Disables the port and disconnects the node. After the return, no call into the sink is in
	 * progress or will be made. Must not be called within such a call.
	 */
	void detach();

	/* If both ports of a link are enabled, the link trains at once; see link_changed(). */
	void enable();
	void disable();
	bool enabled() const { return enabled_.load(std::memory_order_acquire); }
	/* Takes the link down and up again, as Set(PortInfo) with PortState DOWN requests. */
	void retrain();

	bool link_up() const;
	/* See Link::await_change(). */
	void await_link_change() const;
	/*
	 * Returns the rate to which the link has trained, or a default for a port without a link.
	 */
	LinkRate rate() const;
	/* Takes effect when the link trains next. */
	void enable_rates(const EnabledRates &rates);
	EnabledRates enabled_rates() const
	{
		return enabled_rates_.load(std::memory_order_acquire);
	}
	/* Returns the largest MTU that the other end of the link and the cable support. */
	ib::Mtu mtu_cap() const;

	/*
	 * For a port that represents a port in another process, with which its node exchanges
	 * packets (net/trunk). While it is withheld, the link trains but stays down, because the
	 * other process has not agreed to bring it up. Takes effect when the link's state is
	 * evaluated next, at the latest by settle(), so that a sink may withhold its port within
	 * link_changed().
	 */
	void withhold(bool withheld) { withheld_.store(withheld, std::memory_order_release); }
	bool withheld() const { return withheld_.load(std::memory_order_acquire); }
	void settle();
	/* Sets the largest MTU of the remote port. Takes effect when the link trains next. */
	void limit_mtu(ib::Mtu mtu) { mtu_limit_.store(mtu, std::memory_order_release); }

	/*
	 * Sends a packet on the VL in its LRH. Unless the result is no_credit, `packet` is empty
	 * afterwards.
	 */
	Sent send(Packet &packet);

	Counters &counters() { return counters_; }
	const Counters &counters() const { return counters_; }
	Link *link() const { return link_.load(std::memory_order_acquire); }
	/* Returns the port at the other end, or null without a link. */
	Port *peer() const;
	/* Returns true if a switch is at the other end. */
	bool peer_forwards() const;

private:
	friend class Link;
	friend class Packet;

	/* Returns true if a packet to the port may borrow a credit instead of taking it. */
	bool may_borrow_credit(std::uint8_t vl) const;
	bool take_credit(std::uint8_t vl);
	void return_credits(std::uint8_t vl, int count);
	/* Receives a packet from the link: counts it, checks its ICRC, and calls the sink. */
	void deliver(Packet &&packet);
	void announce(bool up);
	void announce_settled(bool trained);

	/* Exists during each call into the sink, so that detach() can wait for its end. */
	class SinkCall;

	const std::string name_;
	Timeline &timeline_;
	std::atomic<Link *> link_{nullptr};
	std::atomic<PortSink *> sink_{nullptr};
	/* Number of calls in progress into the sink that SinkCalls could not record. */
	std::atomic<unsigned> sink_calls_{0};
	/* The sink's borrows_credits(). */
	std::atomic<bool> lends_credits_{false};
	std::atomic<bool> enabled_{false};
	std::atomic<EnabledRates> enabled_rates_{EnabledRates{}};
	std::atomic<bool> withheld_{false};
	std::atomic<ib::Mtu> mtu_limit_{ib::Mtu::mtu_4096};
	/* Free credits; negative if more packets than credits have been kept. */
	std::array<std::atomic<int>, kVls> credits_;
	/* True if the peer waits for a credit of this VL. */
	std::array<std::atomic<bool>, kVls> starved_{};
	Counters counters_;
};

} // namespace weft::fabric
