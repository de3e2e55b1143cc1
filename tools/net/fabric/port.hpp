// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A port: one end of a link. A node (card, switch, subnet manager) implements what is behind it and
 * attaches a PortSink; the fabric owns the Port itself, which lives as long as the fabric.
 *
 * Threads. send() may be called on any thread, concurrently, and never blocks. A packet passes
 * through switches inline on the sender's thread unless a link has a delay or faults; so the
 * methods of a PortSink are called on the threads of other nodes, without locks of the fabric,
 * concurrently. They must only enqueue the packet and wake their own thread.
 *
 * Flow control. A sent packet takes a credit of the receiving port for its VL, and returns it when
 * the receiver destroys it (or calls release_credit()): so a receiver's queue of packets is bounded
 * by its credits. Without a credit, send() returns no_credit, leaves the packet with the caller,
 * and the caller's sink gets credit_available() once. VL15 has no flow control: the receiver drops
 * and counts packets for which it has no space (IBA 7.9.1).
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
	/* The packet has been sent, or lost on its way: the sender cannot distinguish these. */
	done,
	/* It stays with the caller; credit_available() will be called. */
	no_credit,
	/* The link is down: the packet was dropped and counted as a discard. */
	link_down,
};

class PortSink
{
public:
	virtual ~PortSink() = default;
	/* A packet arrived. Its ICRC is right. It holds a credit until destroyed. */
	virtual void receive(Packet &&packet) = 0;
	/*
	 * The link came up (the port's state becomes INIT) or went down. The argument is the state
	 * at the time of the call; ask Port::link_up() for the present one. A link that retrains
	 * calls with false, then with true. Calls for one port come one after the other; the link's
	 * state is locked meanwhile, so that enabling, disabling or retraining from here deadlocks.
	 */
	virtual void link_changed(bool up) = 0;
	/*
	 * For a port that represents a remote one (see Port::withhold()): the link's state was
	 * looked at, and it has trained, so that only withhold() keeps it down, or it has not.
	 * Called as link_changed() is.
	 */
	virtual void link_settled(bool trained) { static_cast<void>(trained); }
	/* A send() on this VL that was refused for want of credit may be tried again. */
	virtual void credit_available(std::uint8_t vl) { static_cast<void>(vl); }
	/* True for a switch, which passes on packets with a wrong ICRC; an end port drops them. */
	virtual bool forwards() const { return false; }
};

/* Rate that two connected ports have negotiated; encodings of PortInfo. */
struct LinkRate {
	std::uint8_t width = ib::width_4x;
	std::uint8_t speed = ib::speed_qdr;
	std::uint8_t speed_ext = ib::speed_ext_none;
	bool operator==(const LinkRate &) const = default;
};

/* Widths and speeds that a port trains to: the bits of PortInfo's LinkWidthEnabled and so on. */
struct alignas(4) EnabledRates {
	std::uint8_t widths = 0xff;
	std::uint8_t speeds = 0xf;
	std::uint8_t speeds_ext = 0x1f;
	bool operator==(const EnabledRates &) const = default;
};

/*
 * The best rate that a cable and both its ports have: the widest, then the fastest. Nothing if
 * there is none, and then the link does not come up.
 */
std::optional<LinkRate> negotiate(const LinkRate &cable, const EnabledRates &a,
				  const EnabledRates &b);

class Port
{
public:
	static constexpr unsigned kVls = 16;
	static constexpr int kDefaultCredits = 256;

	/* @timeline: of its fabric. */
	Port(std::string name, Timeline &timeline, int credits_per_vl = kDefaultCredits);
	Port(const Port &) = delete;
	Port &operator=(const Port &) = delete;
	~Port();

	const std::string &name() const { return name_; }
	Timeline &timeline() const { return timeline_; }

	/* Give the port its node. At most one at a time. The port starts disabled. */
	void attach(PortSink &sink);
	/*
	 * Disable the port and take the node away. When it returns no call into the sink runs or
	 * will. Not to be called from within such a call.
	 */
	void detach();

	/* Enabled ports at both ends of a link that is up train at once; see link_changed(). */
	void enable();
	void disable();
	bool enabled() const { return enabled_.load(std::memory_order_acquire); }
	/* Take the link down and up again, as Set(PortInfo) with PortState DOWN asks. */
	void retrain();

	bool link_up() const;
	/* The rate that the link trained to; the default for a port without one. */
	LinkRate rate() const;
	/* Takes effect when the link trains next. */
	void enable_rates(const EnabledRates &rates);
	EnabledRates enabled_rates() const
	{
		return enabled_rates_.load(std::memory_order_acquire);
	}
	/* The largest MTU that the link's other end and the cable allow. */
	ib::Mtu mtu_cap() const;

	/*
	 * For a port that represents one in another process, with which its node exchanges packets
	 * (net/trunk). While it is withheld, its link trains but stays down: the far end has not
	 * agreed to come up. Takes effect when the link's state is looked at next, by settle() at
	 * the latest, so that a sink may withhold its port from within link_changed().
	 */
	void withhold(bool withheld) { withheld_.store(withheld, std::memory_order_release); }
	bool withheld() const { return withheld_.load(std::memory_order_acquire); }
	void settle();
	/*
	 * The largest MTU of the port that it represents. Takes effect when the link trains next.
	 */
	void limit_mtu(ib::Mtu mtu) { mtu_limit_.store(mtu, std::memory_order_release); }

	/*
	 * Send a packet on the VL that its LRH names.
	 * Unless the answer is no_credit the packet is gone from `packet`.
	 */
	Sent send(Packet &packet);

	Counters &counters() { return counters_; }
	const Counters &counters() const { return counters_; }
	Link *link() const { return link_.load(std::memory_order_acquire); }
	/* The port at the other end; null without a link. */
	Port *peer() const;
	/* Returns true if a switch is at the other end. */
	bool peer_forwards() const;

private:
	friend class Link;
	friend class Packet;

	bool take_credit(std::uint8_t vl);
	void return_credit(std::uint8_t vl);
	/* The link's last step: count, check the ICRC, hand to the sink. */
	void deliver(Packet &&packet);
	void announce(bool up);
	void announce_settled(bool trained);

	/* Entered around each call into the sink, so that detach() can wait for it. */
	class SinkCall;

	const std::string name_;
	Timeline &timeline_;
	std::atomic<Link *> link_{nullptr};
	std::atomic<PortSink *> sink_{nullptr};
	std::atomic<unsigned> sink_calls_{0};
	std::atomic<bool> enabled_{false};
	std::atomic<EnabledRates> enabled_rates_{EnabledRates{}};
	std::atomic<bool> withheld_{false};
	std::atomic<ib::Mtu> mtu_limit_{ib::Mtu::mtu_4096};
	std::array<std::atomic<int>, kVls> credits_;
	/* The peer waits for a credit of this VL. */
	std::array<std::atomic<bool>, kVls> starved_{};
	Counters counters_;
};

} // namespace weft::fabric
