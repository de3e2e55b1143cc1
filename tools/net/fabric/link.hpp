// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Models a cable between two ports, with its rate, MTU, delay, faults and capture. The fabric owns
 * the link.
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

/* Faults of a link, which are decided for each packet separately. Probabilities are from 0 to 1. */
struct Faults {
	std::chrono::nanoseconds delay{0};
	/*
	 * Maximum of a random addition to the delay, uniformly distributed from 0. The order is
	 * kept unless reordering is requested.
	 */
	std::chrono::nanoseconds jitter{0};
	double loss = 0;
	double duplication = 0;
	/* The packet is held back until a later packet has passed, or for 10 ms. */
	double reordering = 0;
	/* One to three bits of the packet are flipped on the wire; the VCRC detects this. */
	double corruption = 0;
	/* One bit is flipped and the VCRC corrected; the ICRC detects this at the end port. */
	double silent_corruption = 0;
	/*
	 * Additional faults of the CM's messages (MADs of its class to QP1). They change no counter
	 * of the port, and the CRCs of a changed message are correct.
	 */
	double cm_loss = 0;
	double cm_duplication = 0;
	/*
	 * Probability that a message is late: it arrives after a random time, uniformly distributed
	 * from 0 to cm_delay. Later packets overtake it.
	 */
	double cm_lateness = 0;
	std::chrono::nanoseconds cm_delay{std::chrono::seconds(1)};
	/* One byte of the message gets another value. */
	double cm_corruption = 0;

	bool any_of_cm() const
	{
		return cm_loss > 0 || cm_duplication > 0 || cm_lateness > 0 || cm_corruption > 0;
	}
	bool any() const
	{
		return delay.count() > 0 || jitter.count() > 0 || loss > 0 || duplication > 0 ||
		       reordering > 0 || corruption > 0 || silent_corruption > 0 || any_of_cm();
	}
};

struct LinkConfig {
	LinkRate rate{};
	ib::Mtu mtu = ib::Mtu::mtu_4096;
	bool up = true;
	Faults faults{};
	/* Time between the moment when both ends are ready and the moment when the link is up. */
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
	 * Removes the link from its ports, which may then have other links. restore() connects the
	 * ports again, with @config. The object stays the same, because a thread that sends a
	 * packet may still be in one of its functions. Packets in flight are lost. Only the fabric
	 * calls these functions, one at a time.
	 */
	void remove();
	void restore(const LinkConfig &config);

	const std::string &name() const { return name_; }
	Port &end(unsigned side) const { return *ends_[side]; }
	Port &other(const Port &port) const { return *ends_[ends_[0] == &port ? 1 : 0]; }

	/* Plugs the cable in or pulls it. The link is up if both ports are enabled, too. */
	void set_plugged(bool plugged);
	bool plugged() const;
	bool up() const { return up_.load(std::memory_order_acquire); }
	void retrain();
	/* Takes effect when the link trains next. */
	/*
	 * Returns when both ends know the last change of the link's state. Must not be called in
	 * PortSink::link_changed().
	 */
	void await_change() const;
	void set_training(std::chrono::nanoseconds time);
	std::chrono::nanoseconds training() const;

	/* Takes effect for packets sent from now on. */
	void set_faults(const Faults &faults);
	Faults faults() const;
	/* Returns the highest rate of the cable. */
	LinkRate rate() const;
	/* Returns the rate to which the link has trained. */
	LinkRate trained_rate() const;
	ib::Mtu mtu() const;
	/* Changes the rate or MTU, and retrains the link. */
	void set_rate(const LinkRate &rate, ib::Mtu mtu);

	/*
	 * Records all packets that arrive at either end, as an interface with the link's name. Null
	 * stops the capture.
	 */
	void set_capture(std::shared_ptr<Capture> capture);
	std::shared_ptr<Capture> capture() const;

private:
	friend class Port;

	using TimePoint = std::chrono::steady_clock::time_point;

	/*
	 * A late message takes its credit only when it arrives, so that it blocks no other packet.
	 */
	struct InFlight {
		Port *to;
		Packet packet;
		bool late;
	};
	/* Effect of the present faults on one packet. */
	struct Fate;

	/*
	 * Returns true if each packet must be captured or gets faults, so that runs must be split.
	 */
	bool looks_at_packets() const
	{
		return slow_.load(std::memory_order_acquire) ||
		       captured_.load(std::memory_order_acquire);
	}
	/* Carries a packet that holds a credit of `to`. */
	void carry(Port &to, Packet &&packet);
	void carry_with_faults(Port &to, Packet &&packet);
	Fate draw_fate() WEFT_REQUIRES(mutex_);
	/*
	 * Applies the faults of the CM's messages. Returns false if the packet does not arrive now.
	 */
	bool apply_cm_faults(Port &to, Packet &packet, bool &doubled);
	/* Returns false if too many messages are late; @packet is then unchanged. */
	bool fly_late(Port &to, Packet &&packet, std::chrono::nanoseconds delay);
	bool chance(double probability) WEFT_REQUIRES(mutex_);
	void arrive(Port &to, Packet &&packet);
	/* Records a packet, if there is a capture. */
	void record(std::span<const std::byte> wire);
	/*
	 * Flips bits on the wire. Returns the damaged packet, if a receiver would still accept it.
	 */
	std::optional<Packet> damage(Port &to, const Packet &packet, unsigned bits, bool silent);
	void fly(Port &to, Packet &&packet, TimePoint due, bool late = false) WEFT_REQUIRES(mutex_);
	void release_held(unsigned side, std::uint64_t number);
	unsigned side_of(const Port &port) const { return ends_[0] == &port ? 0 : 1; }
	/* Brings the link up or down according to its ends and cable. */
	void settle_locked() WEFT_REQUIRES(state_mutex_);
	/* Brings the link up if it has trained and neither end is withheld. */
	void come_up_locked() WEFT_REQUIRES(state_mutex_);
	bool withheld() const;
	/* Returns the rate on which both ends agree; nothing if there is none. */
	std::optional<LinkRate> negotiated() const;
	/* Sets the state and notifies both ends. */
	void change_locked(bool up) WEFT_REQUIRES(state_mutex_);
	/* Schedules a check at the end of the training, which may have been cancelled by then. */
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

	/* Serialises changes of the link's state and their notifications. */
	mutable Mutex state_mutex_;
	bool plugged_ WEFT_GUARDED_BY(state_mutex_);
	std::chrono::nanoseconds training_ WEFT_GUARDED_BY(state_mutex_);
	bool in_training_ WEFT_GUARDED_BY(state_mutex_) = false;
	/* Training has completed, but the link may be withheld (see Port::withhold()). */
	bool trained_ WEFT_GUARDED_BY(state_mutex_) = false;
	LineBudget log_budget_ WEFT_GUARDED_BY(state_mutex_);
	Clock::time_point training_ends_ WEFT_GUARDED_BY(state_mutex_);
	/* Time of the scheduled check for the end of a training, if there is one. */
	std::optional<Clock::time_point> look_at_ WEFT_GUARDED_BY(state_mutex_);
	std::atomic<bool> up_{false};

	/* Set while packets must take the slow path: there are faults, or packets in flight. */
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
	/* Number of late messages of the CM in in_flight_. */
	unsigned late_ WEFT_GUARDED_BY(mutex_) = 0;
	/* The latest arrival planned for each end, so that jitter alone does not reorder. */
	TimePoint last_due_[2] WEFT_GUARDED_BY(mutex_) = {};
	/* For each end, a reordered packet that waits to be overtaken. */
	std::optional<Packet> held_[2] WEFT_GUARDED_BY(mutex_);
	/* Identifies the held packet to which a scheduled release belongs. */
	std::uint64_t held_number_[2] WEFT_GUARDED_BY(mutex_) = {};
};

} // namespace weft::fabric
