// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the local half of a trunk: a port that represents the port at the other end of the
// trunk, in another daemon. An ordinary link, with rate, delay, faults, capture and counters,
// connects this port with the port that the lab file selects.
//
// Credits: A packet that the fabric sends takes a credit of this port, as on any link, and holds it
// until the peer reports that the packet has entered the buffer of the port at its end.
// Back-pressure of the remote port therefore reaches the sender, and packets that are lost with a
// connection return their credits at once.
//
// State of the link: Each daemon trains its own link. A link that has trained comes up only when
// the peer's link has trained as well, and each end knows the number of the other's current attempt
// (LinkBody). The link goes down when the peer's link goes down, or when the connection is lost.
//
// This code uses no sockets: the owner of the connection sends and receives the frames.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "net/fabric/port.hpp"
#include "net/trunk/end.hpp"

namespace weft::trunk
{

class TrunkPort final : public End, private fabric::PortSink
{
public:
	// Attaches to @port and enables it. @wake is called when serve() should be called. It runs
	// on any thread, with locks held, so it may only notify the owner. @port must outlive this
	// object.
	TrunkPort(fabric::Port &port, std::function<void()> wake);
	~TrunkPort() override;
	TrunkPort(const TrunkPort &) = delete;
	TrunkPort &operator=(const TrunkPort &) = delete;

	// Without a connection, all packets in transit are lost, and all credits are available.
	void connected() override;
	void disconnected() override;
	const char *take(const Frame &frame) override;
	std::size_t serve(std::deque<Buffer> &out, std::size_t room) override;

	bool link_up() const { return port_.link_up(); }

private:
	static constexpr unsigned kVls = fabric::Port::kVls;

	// A packet encoded as a frame.
	struct Outgoing {
		Buffer frame;
		fabric::Packet credit; // stripped
		unsigned packets;
	};
	// A frame that was sent and whose credits the peer has not returned.
	struct Outstanding {
		fabric::Packet credit;
		unsigned packets;
	};
	using Queues = std::array<std::deque<Outgoing>, kVls>;

	// fabric::PortSink, on any thread
	void receive(fabric::Packet &&packet) override;
	void link_changed(bool up) override;
	void link_settled(bool trained) override;
	void credit_available(std::uint8_t vl) override;
	bool forwards() const override { return true; }

	void went_down_locked() WEFT_REQUIRES(mutex_);

	const char *take_packet(const Frame &frame);
	const char *take_credits(const Frame &frame);
	const char *take_link(const Frame &frame);
	// Sends a packet into the fabric. Returns false if there is no credit for all of it.
	bool enter(std::uint8_t vl, fabric::Packet &packet);
	void enter_waiting(std::uint8_t vl);
	// Returns true if credits of this VL must not wait for other frames.
	bool must_return_credits(unsigned vl) const;
	struct Half {
		std::uint32_t attempt;
		bool ready;
	};
	// Returns the state of this half. First drops the packets that were lost when it went down.
	Half own_half();
	void drop_queued();
	// Drops packets from the peer that have found no credit; their credits are returned to the
	// peer.
	void drop_waiting();
	LinkBody offer(const Half &half) const;
	// Brings the link up or down according to both halves.
	void agree(const Half &half);
	void go_down();

	fabric::Port &port_;
	const std::function<void()> wake_;

	Mutex mutex_;
	bool connected_ WEFT_GUARDED_BY(mutex_) = false;
	bool ready_ WEFT_GUARDED_BY(mutex_) = false;
	// Incremented each time this half goes down. 0 means that there is no attempt.
	std::uint32_t attempt_ WEFT_GUARDED_BY(mutex_) = 1;
	Queues queues_ WEFT_GUARDED_BY(mutex_);
	// A bit for each VL on which the port's peer has credits again.
	std::atomic<std::uint32_t> credit_back_{0};

	// Used on the owner's thread.
	std::array<std::deque<Outstanding>, kVls> outstanding_;
	std::array<unsigned, kVls> outstanding_packets_{};
	// Packets from the peer that wait for a credit of the port at this end.
	std::array<std::deque<fabric::Packet>, kVls> waiting_;
	std::array<unsigned, kVls> waiting_packets_{};
	// Credits to be returned to the peer.
	std::array<unsigned, kVls> owed_{};
	std::optional<LinkBody> sent_, received_;
	std::uint32_t dropped_to_ = 1; // the last attempt for which drop_queued() was called
	// The peer's attempt for which this half is up; nothing while it is withheld.
	std::optional<std::uint32_t> agreed_;
};

} // namespace weft::trunk
