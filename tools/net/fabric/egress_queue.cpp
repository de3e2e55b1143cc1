// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/egress_queue.hpp"

#include <algorithm>
#include <utility>

#include "net/fabric/timeline.hpp"

namespace weft::fabric
{

namespace
{

/*
 * Budget of a thread for sending packets of other senders. A packet that is sent may lead to the
 * queue of the next switch within the call, so nested calls share the budget of the first one.
 */
class Turn
{
public:
	Turn() : outermost_(!std::exchange(inside_, true))
	{
		if (outermost_)
			left_ = EgressQueue::kTurnBudget;
	}
	~Turn()
	{
		if (outermost_)
			inside_ = false;
	}
	Turn(const Turn &) = delete;
	Turn &operator=(const Turn &) = delete;

	bool take()
	{
		if (left_ == 0)
			return false;
		left_--;
		return true;
	}

private:
	static thread_local bool inside_;
	static thread_local unsigned left_;
	const bool outermost_;
};

thread_local bool Turn::inside_ = false;
thread_local unsigned Turn::left_ = 0;

} // namespace

EgressQueue::Result EgressQueue::send(Packet &&packet, std::size_t limit)
{
	std::uint8_t vl = packet.lrh().vl();
	if (queued_[vl].load(std::memory_order_acquire) == 0) {
		Sent sent = port_.send(packet);
		if (sent != Sent::no_credit)
			return sent == Sent::done ? Result::sent : Result::link_down;
	}
	{
		const MutexLock lock(mutex_);
		if (!queues_[vl])
			queues_[vl] = std::make_unique<VlQueue>();
		VlQueue &queue = *queues_[vl];
		if (queue.packets.size() >= limit)
			return Result::dropped;
		packet.keep_credit();
		queue.packets.push_back({std::move(packet), port_.timeline().now()});
		queued_[vl].fetch_add(1, std::memory_order_acq_rel);
	}
	/* The credit may have returned before the packet was queued. */
	drain(vl);
	return Result::queued;
}

/*
 * Sends a queued packet. If the next node has no memory for it, the packet is lost. This is not
 * reported to the caller, which is usually releasing another packet.
 */
Sent EgressQueue::send_left(Packet &packet) noexcept
{
	try {
		return port_.send(packet);
	} catch (...) {
		Counters::add(port_.counters().xmit_discards);
		return Sent::done;
	}
}

void EgressQueue::drain(std::uint8_t vl) noexcept
{
	Turn turn;
	bool rest = false;
	MutexLock lock(mutex_);
	if (!queues_[vl])
		return;
	VlQueue &queue = *queues_[vl];
	if (queue.draining) {
		/* Another thread is draining it, or this one in an outer call. */
		queue.again = true;
		return;
	}
	queue.draining = true;
	do {
		queue.again = false;
		while (!queue.packets.empty() && !rest) {
			if (!turn.take()) {
				rest = true;
				break;
			}
			std::list<Waiting> first;
			first.splice(first.begin(), queue.packets, queue.packets.begin());
			lock.unlock();
			const Sent sent = send_left(first.front().packet);
			if (sent != Sent::no_credit) {
				first.clear();
				queued_[vl].fetch_sub(1, std::memory_order_acq_rel);
			}
			lock.lock();
			if (sent == Sent::no_credit) {
				queue.packets.splice(queue.packets.begin(), first);
				break;
			}
		}
	} while (queue.again && !rest);
	queue.draining = false;
	if (!rest || std::exchange(queue.planned, true))
		return;
	lock.unlock();
	drain_later(vl);
}

/* Drains the queue later. If there is no memory to schedule that, the next sender does it. */
void EgressQueue::drain_later(std::uint8_t vl) noexcept
{
	const auto not_planned = [this, vl] {
		const MutexLock lock(mutex_);
		queues_[vl]->planned = false;
	};
	try {
		port_.timeline().after(
			{},
			[this, vl, not_planned] {
				not_planned();
				drain(vl);
			},
			this);
	} catch (...) {
		not_planned();
	}
}

EgressQueue::~EgressQueue()
{
	if (std::ranges::any_of(queues_, [](const auto &queue) { return queue != nullptr; }))
		port_.timeline().forget(this);
}

std::vector<Packet> EgressQueue::expire(std::uint8_t vl, Clock::time_point before)
{
	std::vector<Packet> expired;
	const MutexLock lock(mutex_);
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
	const MutexLock lock(mutex_);
	if (!queues_[vl] || queues_[vl]->packets.empty())
		return Clock::time_point::max();
	return queues_[vl]->packets.front().since;
}

} // namespace weft::fabric
