// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Packets that wait for credit to leave by a port, in order, a queue for each VL. Used by switches
 * and by software end nodes. Thread-safe; holds no lock while a packet travels, because a packet on
 * its way may give back the credit that brings the next one here.
 */
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/environment.hpp"
#include "fabric/port.hpp"

namespace weft::fabric
{

class EgressQueue
{
public:
	/* @environment: whose time packets wait in. */
	EgressQueue(Port &port, const Environment &environment)
	    : port_(port), environment_(environment)
	{
	}

	/*
	 * Send now, or queue behind what waits already.
	 * @limit: packets that may wait on this VL; one more is dropped: it stays with the caller,
	 * to be destroyed.
	 */
	enum class Result { sent, queued, link_down, dropped };
	Result send(Packet &&packet, std::size_t limit);

	/* Credit of this VL came back: send what waits. */
	void drain(std::uint8_t vl);

	/* Take out what has waited on this VL since before that time, for the caller to drop. */
	std::vector<Packet> expire(std::uint8_t vl, Clock::time_point before);
	/* When the first packet of this VL began to wait; the clock's maximum if none does. */
	Clock::time_point waiting_since(std::uint8_t vl) const;

private:
	struct Waiting {
		Packet packet;
		Clock::time_point since;
	};
	struct VlQueue {
		std::deque<Waiting> packets;
		bool draining = false;
		bool again = false;
	};

	Port &port_;
	const Environment &environment_;
	mutable std::mutex mutex_;
	/* Made when first needed. */
	std::unique_ptr<VlQueue> queues_[Port::vls];
	/* Packets in the queue or being taken from it: nobody may overtake them. */
	std::atomic<unsigned> queued_[Port::vls]{};
};

} // namespace weft::fabric
