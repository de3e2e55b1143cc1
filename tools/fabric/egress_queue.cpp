// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "fabric/egress_queue.hpp"

#include <utility>

namespace weft::fabric
{

EgressQueue::Result EgressQueue::send(Packet &&packet, std::size_t limit)
{
	std::uint8_t vl = packet.lrh().vl();
	if (queued_[vl].load(std::memory_order_acquire) == 0) {
		Sent sent = port_.send(packet);
		if (sent != Sent::no_credit)
			return sent == Sent::done ? Result::sent : Result::link_down;
	}
	{
		std::lock_guard lock(mutex_);
		if (!queues_[vl])
			queues_[vl] = std::make_unique<VlQueue>();
		VlQueue &queue = *queues_[vl];
		if (queue.packets.size() >= limit)
			return Result::dropped;
		queue.packets.push_back({std::move(packet), environment_.now()});
		queued_[vl].fetch_add(1, std::memory_order_acq_rel);
	}
	/* The credit may have come back before the packet was in the queue. */
	drain(vl);
	return Result::queued;
}

void EgressQueue::drain(std::uint8_t vl)
{
	std::unique_lock lock(mutex_);
	if (!queues_[vl])
		return;
	VlQueue &queue = *queues_[vl];
	if (queue.draining) {
		/* By another thread, or by this one further up its stack. */
		queue.again = true;
		return;
	}
	queue.draining = true;
	do {
		queue.again = false;
		while (!queue.packets.empty()) {
			Waiting first = std::move(queue.packets.front());
			queue.packets.pop_front();
			lock.unlock();
			Sent sent = port_.send(first.packet);
			if (sent != Sent::no_credit)
				queued_[vl].fetch_sub(1, std::memory_order_acq_rel);
			lock.lock();
			if (sent == Sent::no_credit) {
				queue.packets.push_front(std::move(first));
				break;
			}
		}
	} while (queue.again);
	queue.draining = false;
}

std::vector<Packet> EgressQueue::expire(std::uint8_t vl, Clock::time_point before)
{
	std::vector<Packet> expired;
	std::lock_guard lock(mutex_);
	if (!queues_[vl])
		return expired;
	auto &packets = queues_[vl]->packets;
	while (!packets.empty() && packets.front().since <= before) {
		expired.push_back(std::move(packets.front().packet));
		packets.pop_front();
		queued_[vl].fetch_sub(1, std::memory_order_acq_rel);
	}
	return expired;
}

Clock::time_point EgressQueue::waiting_since(std::uint8_t vl) const
{
	std::lock_guard lock(mutex_);
	if (!queues_[vl] || queues_[vl]->packets.empty())
		return Clock::time_point::max();
	return queues_[vl]->packets.front().since;
}

} // namespace weft::fabric
