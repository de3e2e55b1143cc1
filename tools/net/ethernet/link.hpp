// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Models a cable between two ports, with the same faults as InfiniBand links. A link and its ports
// belong to one event loop, and all their functions are called on that loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "base/loop.hpp"
#include "net/ethernet/capture.hpp"
#include "net/ethernet/frame.hpp"
#include "net/fabric/link.hpp"

namespace weft::ethernet
{

class Link;

// Counts since the port was created.
struct Counters {
	std::uint64_t xmit_frames = 0;
	std::uint64_t xmit_bytes = 0;
	std::uint64_t rcv_frames = 0;
	std::uint64_t rcv_bytes = 0;
	std::uint64_t rcv_group_frames = 0;
	std::uint64_t rcv_fcs_errors = 0; // corrupted or lost on the link
	std::uint64_t rcv_discards = 0;   // dropped because the guest does not read
	std::uint64_t xmit_discards = 0;  // the link was down, or had no space
	std::uint64_t xmit_undersize = 0; // invalid frames that a guest has sent
	std::uint64_t xmit_oversize = 0;
	// Counts frames for all ports of a switch that exceeded the limit for flooded frames of one
	// port.
	std::uint64_t rcv_storm_discards = 0;
};

// Port - one end of a link.
class Port
{
public:
	// @receive is called for each received frame, and must not send on the same link.
	Port(std::string name, std::function<void(const FramePtr &)> receive)
	    : name_(std::move(name)), receive_(std::move(receive))
	{
	}
	Port(const Port &) = delete;
	Port &operator=(const Port &) = delete;

	const std::string &name() const { return name_; }
	Link *link() const { return link_; }
	// Sends a frame of kLeastFrame to kMostFrame bytes; it is dropped if the port has no link.
	void send(const FramePtr &frame);

	Counters counters;

private:
	friend class Link;
	void deliver(const FramePtr &frame);

	const std::string name_;
	const std::function<void(const FramePtr &)> receive_;
	Link *link_ = nullptr;
};

struct LinkSettings {
	bool up = true;
	// The frame check sequence detects corruption, but not silent corruption.
	fabric::Faults faults{};
};

// Link - a link between two ports, which outlive it.
class Link
{
public:
	// Limit of the bytes that a delay holds back on the way to one end, including kOverhead for
	// each frame. Frames beyond the limit are dropped.
	static constexpr std::size_t kMostInFlight = 4 << 20;
	static constexpr std::size_t kOverhead = 160;

	// All random decisions depend on @seed.
	Link(Loop &loop, Port &a, Port &b, const LinkSettings &settings, std::uint64_t seed);
	// Frames in flight are lost.
	~Link();
	Link(const Link &) = delete;
	Link &operator=(const Link &) = delete;

	const std::string &name() const { return name_; }
	const Port &end(unsigned side) const { return *ends_[side]; }
	const LinkSettings &settings() const { return settings_; }
	// Applies to frames that are sent from now on. A link that goes down loses all frames in
	// flight.
	void set(const LinkSettings &settings);
	// Records all frames that arrive at either end. Null stops the capture.
	void set_capture(std::shared_ptr<Capture> capture);
	const std::shared_ptr<Capture> &capture() const { return capture_; }

private:
	friend class Port;

	struct InFlight {
		unsigned side; // the receiving end
		FramePtr frame;
	};

	void carry(Port &from, const FramePtr &frame);
	bool chance(double probability);
	FramePtr with_a_bit_flipped(const Frame &frame);
	void pass(unsigned side, const FramePtr &frame);
	void arrive(unsigned side, const FramePtr &frame);
	void run();
	void arm();

	Loop &loop_;
	Port *const ends_[2];
	const std::string name_;
	LinkSettings settings_;
	std::mt19937_64 random_;
	std::shared_ptr<Capture> capture_;
	unsigned interface_ = 0; // number of the interface in the capture
	// Ordered by arrival time; equal times keep the order of sending.
	std::multimap<Clock::time_point, InFlight> in_flight_;
	// The bytes on the way to each end, so that the two directions are limited separately.
	std::size_t bytes_in_flight_[2]{};
	// The latest arrival planned for each end, so that jitter alone does not reorder.
	Clock::time_point last_due_[2]{};
	// For each end, a reordered frame that waits to be overtaken, and the end of the wait.
	FramePtr held_[2];
	Clock::time_point held_until_[2]{};
	Timer timer_;
};

} // namespace weft::ethernet
