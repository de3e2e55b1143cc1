// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/multicast.hpp"

#include <algorithm>
#include <utility>

#include "net/fabric/timeline.hpp"

namespace weft::fabric
{

void MulticastSender::enter(Packet &&packet)
{
	int at_once = 0;
	{
		const MutexLock lock(mutex_);
		if (closed_)
			return;
		if (tickets_ >= kTicketsMax || !waiting_.empty()) {
			waiting_.push_back(std::move(packet));
			return;
		}
		/*
		 * Make copies at once only if no earlier packet is still being copied, so that the
		 * order is kept.
		 */
		if (tickets_++ == 0)
			at_once = MulticastTicket::kAtOnceMax;
	}
	packet.set_ticket(std::make_shared<MulticastTicket>(shared_from_this(), at_once));
	forward_(std::move(packet));
}

/*
 * May run in the destructor of any packet. If there is no memory for the task, the return of the
 * next ticket schedules it.
 */
void MulticastSender::returned() noexcept
{
	const MutexLock lock(mutex_);
	tickets_--;
	if (closed_ || planned_ || waiting_.empty())
		return;
	try {
		timeline_.after({}, [self = shared_from_this()] { self->forward_waiting(); }, this);
		planned_ = true;
	} catch (...) {
		planned_ = false;
	}
}

void MulticastSender::forward_waiting()
{
	for (;;) {
		Packet packet;
		{
			const MutexLock lock(mutex_);
			planned_ = false;
			if (closed_ || tickets_ >= kTicketsMax || waiting_.empty())
				return;
			packet = std::move(waiting_.front());
			waiting_.pop_front();
			tickets_++;
		}
		packet.set_ticket(std::make_shared<MulticastTicket>(shared_from_this(), 0));
		forward_(std::move(packet));
	}
}

void MulticastSender::close()
{
	std::deque<Packet> dropped;
	{
		const MutexLock lock(mutex_);
		closed_ = true;
		dropped.swap(waiting_);
	}
	timeline_.forget(this);
}

CopyQueue::~CopyQueue()
{
	timeline_.forget(this);
}

bool CopyQueue::has(const void *sender)
{
	const MutexLock lock(mutex_);
	return flows_.contains(sender);
}

void CopyQueue::push(Entry &&entry)
{
	const MutexLock lock(mutex_);
	const void *const sender = entry.sender;
	Flow &flow = flows_[sender];
	if (flow.entries.empty() && !flow.busy)
		turns_.push_back(sender);
	flow.entries.push_back(std::move(entry));
	plan_locked();
}

/* If there is no memory for the task, the next packet schedules it. */
void CopyQueue::plan_locked() noexcept
{
	if (planned_ || turns_.empty())
		return;
	try {
		timeline_.after({}, [this] { run(); }, this);
		planned_ = true;
	} catch (...) {
		planned_ = false;
	}
}

void CopyQueue::run()
{
	unsigned left = kTaskCopies;
	MutexLock lock(mutex_);
	while (left != 0 && !turns_.empty()) {
		const void *const sender = turns_.front();
		turns_.pop_front();
		Flow *flow = &flows_.at(sender);
		flow->busy = true;
		Entry entry = std::move(flow->entries.front());
		flow->entries.pop_front();
		lock.unlock();
		unsigned turn = std::min(left, kTurnCopies);
		left -= turn;
		const bool done = copy_(entry, turn);
		left += turn;
		if (done) {
			/*
			 * Destroy the packet and its ticket here, because the ticket's return may
			 * call this function with the next packet.
			 */
			const Packet ended = std::move(entry.packet);
		}
		lock.lock();
		flow = &flows_.at(sender);
		flow->busy = false;
		if (!done)
			flow->entries.push_front(std::move(entry));
		if (flow->entries.empty())
			flows_.erase(sender);
		else
			turns_.push_back(sender);
	}
	planned_ = false;
	plan_locked();
}

} // namespace weft::fabric
