// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/channel.hpp"

#include <stdexcept>
#include <utility>
#include <vector>

namespace weft::ethernet
{

bool Channel::is_attached(Side side) const
{
	const MutexLock lock(mutex_);
	return inboxes_[side].reader != nullptr;
}

Channel::End::End(std::shared_ptr<Channel> channel, Side side, Loop &loop,
		  std::function<void(const FramePtr &)> receive, std::function<void()> room)
    : channel_(std::move(channel)), side_(side), receive_(std::move(receive)),
      room_(std::move(room)), wakeup_(loop, [this] { drain(); })
{
	const MutexLock lock(channel_->mutex_);
	Inbox &inbox = channel_->inboxes_[side_];
	if (inbox.reader)
		throw std::logic_error("a side of a channel has two ends");
	inbox.reader = &wakeup_;
}

Channel::End::~End()
{
	const MutexLock lock(channel_->mutex_);
	channel_->report_room(side_);
	channel_->inboxes_[side_] = {};
}

void Channel::report_room(unsigned side)
{
	Inbox &sender = inboxes_[1 - side];
	if (!std::exchange(inboxes_[side].awaited, false) || !sender.reader)
		return;
	sender.room = true;
	sender.reader->signal();
}

bool Channel::End::has_room()
{
	const MutexLock lock(channel_->mutex_);
	Inbox &inbox = channel_->inboxes_[1 - side_];
	if (!inbox.reader || kMostFrame + kOverhead <= kMostQueued - inbox.bytes)
		return true;
	inbox.awaited = true;
	return false;
}

bool Channel::End::send(const FramePtr &frame)
{
	const std::size_t cost = frame->size() + kOverhead;
	const MutexLock lock(channel_->mutex_);
	Inbox &inbox = channel_->inboxes_[1 - side_];
	if (!inbox.reader || cost > kMostQueued - inbox.bytes)
		return false;
	inbox.frames.push_back(frame);
	inbox.bytes += cost;
	// The lock is needed because the owner of the reader removes it under the lock before
	// destroying it.
	inbox.reader->signal();
	return true;
}

bool Channel::End::peer_is_attached() const
{
	return channel_->is_attached(side_ == kCard ? kNetwork : kCard);
}

void Channel::End::drain()
{
	std::vector<FramePtr> batch;
	bool room = false;
	{
		const MutexLock lock(channel_->mutex_);
		Inbox &inbox = channel_->inboxes_[side_];
		while (!inbox.frames.empty() && batch.size() < kSlice) {
			inbox.bytes -= inbox.frames.front()->size() + kOverhead;
			batch.push_back(std::move(inbox.frames.front()));
			inbox.frames.pop_front();
		}
		if (!inbox.frames.empty())
			wakeup_.signal();
		room = std::exchange(inbox.room, false);
		channel_->report_room(side_);
	}
	for (const FramePtr &frame : batch)
		receive_(frame);
	if (room && room_)
		room_();
}

} // namespace weft::ethernet
