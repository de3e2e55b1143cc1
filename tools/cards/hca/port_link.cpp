// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/port_link.hpp"

#include <algorithm>
#include <utility>

namespace weft::hca
{

PortLink::PortLink(Loop &loop, fabric::Port &port, Handlers handlers)
    : port_(port), handlers_(std::move(handlers)), wakeup_(loop, [this] { drain(); })
{
	port_.attach(*this);
}

PortLink::~PortLink()
{
	port_.detach();
}

void PortLink::receive(fabric::Packet &&packet)
{
	{
		const MutexLock lock(mutex_);
		inbox_.push_back(std::move(packet));
	}
	wakeup_.signal();
}

void PortLink::link_changed(bool up)
{
	{
		const MutexLock lock(mutex_);
		link_event_ = true;
		was_down_ = was_down_ || !up;
	}
	wakeup_.signal();
}

void PortLink::credit_available(std::uint8_t vl)
{
	{
		const MutexLock lock(mutex_);
		credits_ = static_cast<std::uint16_t>(credits_ | 1u << (vl & 15));
	}
	wakeup_.signal();
}

void PortLink::later(std::function<void()> task)
{
	{
		const MutexLock lock(mutex_);
		tasks_.push_back(std::move(task));
	}
	wakeup_.signal();
}

void PortLink::drop()
{
	std::vector<fabric::Packet> old;
	{
		const MutexLock lock(mutex_);
		old.swap(inbox_);
		tasks_.clear();
	}
	batch_.clear();
	next_ = 0;
}

void PortLink::drain()
{
	std::vector<std::function<void()>> tasks;
	std::uint16_t credits;
	bool link_event;
	bool was_down;
	{
		const MutexLock lock(mutex_);
		tasks.swap(tasks_);
		credits = std::exchange(credits_, std::uint16_t{0});
		link_event = std::exchange(link_event_, false);
		was_down = std::exchange(was_down_, false);
		if (next_ == batch_.size()) {
			batch_.clear();
			next_ = 0;
			batch_.swap(inbox_);
		}
	}
	for (auto &task : tasks)
		task();
	if (link_event)
		handlers_.link(was_down);
	for (std::uint8_t vl = 0; credits; ++vl, credits = static_cast<std::uint16_t>(credits >> 1))
		if (credits & 1)
			handlers_.credit(vl);

	// A handler may call drop(), which discards the remaining packets of the batch.
	for (std::size_t i = 0; i < kSlice && next_ < batch_.size(); ++i) {
		fabric::Packet packet = std::move(batch_[next_++]);
		handlers_.packet(std::move(packet));
	}
	bool more = next_ < batch_.size();
	if (!more) {
		const MutexLock lock(mutex_);
		more = !inbox_.empty();
	}
	if (more)
		wakeup_.signal();
}

} // namespace weft::hca
