// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * A cable between two ports: rate, MTU, delay, faults, capture. The fabric owns it.
 */
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "base/mutex.hpp"
#include "base/environment.hpp"
#include "base/line_budget.hpp"
#include "net/fabric/port.hpp"

namespace weft::fabric
{

class Capture;
class Timeline;

/* Faults of a link, chosen for each packet separately. Probabilities from 0 to 1. */
struct Faults {
	std::chrono::nanoseconds delay{0};
	/* Added to the delay, evenly from 0 to this. Order is kept unless reordering is asked for.
	 */
	std::chrono::nanoseconds jitter{0};
	double loss = 0;
	double duplication = 0;
	/* Held back until a later packet has passed (or 10 ms have). */
	double reordering = 0;
	/* One to three bits of the packet flipped on the wire; the VCRC catches it here. */
	double corruption = 0;
	/* A bit flipped behind the VCRC's back; the ICRC catches it at the end port. */
	double silent_corruption = 0;

	bool any() const
	{
		return delay.count() > 0 || jitter.count() > 0 || loss > 0 || duplication > 0 ||
		       reordering > 0 || corruption > 0 || silent_corruption > 0;
	}
};

struct LinkConfig {
	LinkRate rate{};
	ib::Mtu mtu = ib::Mtu::mtu_4096;
	bool up = true;
	Faults faults{};
	/* From the moment that both ends could be up until they are. */
	std::chrono::nanoseconds training{0};
};

class Link
{
public:
	Link(std::string name, Port &a, Port &b, const LinkConfig &config, std::uint64_t seed,
	     Timeline &timeline);
	Link(const Link &) = delete;
	Link &operator=(const Link &) = delete;
	~Link();

	/*
	 * Removes the link from its ports, which may then have others, and restores it with
	 * @config. The object stays the same, because a thread that sends a packet may still be in
	 * one of its functions. Packets in flight are lost. Called only by the fabric, one call at
	 * a time.
	 */
	void remove();
	void restore(const LinkConfig &config);

	const std::string &name() const { return name_; }
	Port &end(unsigned side) const { return *ends_[side]; }
	Port &other(const Port &port) const { return *ends_[ends_[0] == &port ? 1 : 0]; }

	/* The cable plugged in or pulled. The link is up if both ports are enabled, too. */
	void set_plugged(bool plugged);
	bool plugged() const;
	bool up() const { return up_.load(std::memory_order_acquire); }
	void retrain();
	/* Takes effect when the link trains next. */
	void set_training(std::chrono::nanoseconds time);
	std::chrono::nanoseconds training() const;

	/* Takes effect for packets sent from now on. */
	void set_faults(const Faults &faults);
	Faults faults() const;
	/* The best that the cable can do. */
	LinkRate rate() const;
	/* The rate that the link has trained to, at or below that. */
	LinkRate trained_rate() const;
	ib::Mtu mtu() const;
	/* Change the rate or MTU: the link retrains. */
	void set_rate(const LinkRate &rate, ib::Mtu mtu);

	/* Record what arrives at either end, as an interface by the link's name; null ends it. */
	void set_capture(std::shared_ptr<Capture> capture);
	std::shared_ptr<Capture> capture() const;

private:
	friend class Port;

	using TimePoint = std::chrono::steady_clock::time_point;

	struct InFlight {
		Port *to;
		Packet packet;
	};
	/* Effect of the present faults on one packet. */
	struct Fate;

	/* True if packets are captured or faulted one by one: runs must be split. */
	bool looks_at_packets() const
	{
		return slow_.load(std::memory_order_acquire) ||
		       captured_.load(std::memory_order_acquire);
	}
	/* Carry a packet that holds a credit of `to`. */
	void carry(Port &to, Packet &&packet);
	void carry_with_faults(Port &to, Packet &&packet);
	Fate draw_fate() WEFT_REQUIRES(mutex_);
	bool chance(double probability) WEFT_REQUIRES(mutex_);
	void arrive(Port &to, Packet &&packet);
	/* Into the capture, if there is one. */
	void record(std::span<const std::byte> wire);
	/* Flip bits on the wire; what remains of the packet, if a receiver would still take it. */
	std::optional<Packet> damage(Port &to, const Packet &packet, unsigned bits, bool silent);
	void fly(Port &to, Packet &&packet, TimePoint due) WEFT_REQUIRES(mutex_);
	void release_held(unsigned side, std::uint64_t number);
	unsigned side_of(const Port &port) const { return ends_[0] == &port ? 0 : 1; }
	/* Bring the link up or down according to its ends and cable. */
	void settle_locked() WEFT_REQUIRES(state_mutex_);
	/* Bring the link up if it has trained and neither end is withheld. */
	void come_up_locked() WEFT_REQUIRES(state_mutex_);
	bool withheld() const;
	/* The rate that both ends agree on; nothing if they do not. */
	std::optional<LinkRate> negotiated() const;
	/* Notify both ends. */
	void change_locked(bool up) WEFT_REQUIRES(state_mutex_);
	/* Look at the end of the training whether it was called off. */
	void look_later_locked() WEFT_REQUIRES(state_mutex_);
	void look(Clock::time_point when);
	/*
	 * An end was enabled or disabled, or the cable was plugged in or out: updates up_ and
	 * notifies both ends.
	 */
	void update();
	void deliver_due();

	const std::string name_;
	Port *const ends_[2];
	Timeline &timeline_;

	/* Serialises changes of the link's state and their announcements. */
	mutable Mutex state_mutex_;
	bool plugged_ WEFT_GUARDED_BY(state_mutex_);
	std::chrono::nanoseconds training_ WEFT_GUARDED_BY(state_mutex_);
	bool in_training_ WEFT_GUARDED_BY(state_mutex_) = false;
	/* It is up, or only withheld (see Port::withhold()). */
	bool trained_ WEFT_GUARDED_BY(state_mutex_) = false;
	LineBudget log_budget_ WEFT_GUARDED_BY(state_mutex_);
	Clock::time_point training_ends_ WEFT_GUARDED_BY(state_mutex_);
	/* When the timeline will look next whether one is over; none: not at all. */
	std::optional<Clock::time_point> look_at_ WEFT_GUARDED_BY(state_mutex_);
	std::atomic<bool> up_{false};

	/* Set while packets must take the slow way: faults, or packets still in flight. */
	std::atomic<bool> slow_{false};
	std::atomic<bool> captured_{false};

	mutable Mutex mutex_;
	LinkRate rate_ WEFT_GUARDED_BY(mutex_);
	LinkRate trained_rate_ WEFT_GUARDED_BY(mutex_);
	ib::Mtu mtu_ WEFT_GUARDED_BY(mutex_);
	Faults faults_ WEFT_GUARDED_BY(mutex_);
	std::mt19937_64 random_ WEFT_GUARDED_BY(mutex_);
	std::shared_ptr<Capture> capture_ WEFT_GUARDED_BY(mutex_);
	unsigned capture_interface_ WEFT_GUARDED_BY(mutex_) = 0;
	/* Ordered by arrival time; equal times keep the order of sending. */
	std::multimap<TimePoint, InFlight> in_flight_ WEFT_GUARDED_BY(mutex_);
	/* The latest arrival planned for each end, so that jitter alone does not reorder. */
	TimePoint last_due_[2] WEFT_GUARDED_BY(mutex_) = {};
	/* A packet to each end that waits for another to overtake it. */
	std::optional<Packet> held_[2] WEFT_GUARDED_BY(mutex_);
	/* Tells the releases of held packets apart. */
	std::uint64_t held_number_[2] WEFT_GUARDED_BY(mutex_) = {};
};

} // namespace weft::fabric
