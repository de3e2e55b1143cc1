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
    : End(std::move(channel), side, loop,
	  Handlers{.receive = std::move(receive), .room = std::move(room)})
{
}

Channel::End::End(std::shared_ptr<Channel> channel, Side side, Loop &loop, Handlers handlers)
    : channel_(std::move(channel)), side_(side), handlers_(std::move(handlers)),
      wakeup_(loop, [this] { drain(); })
{
	const MutexLock lock(channel_->mutex_);
	Inbox &inbox = channel_->inboxes_[side_];
	if (inbox.reader)
		throw std::logic_error("a side of a channel has two ends");
	inbox.reader = &wakeup_;
	channel_->report_change(side_);
}

Channel::End::~End()
{
	const MutexLock lock(channel_->mutex_);
	channel_->report_room(side_);
	channel_->inboxes_[side_] = {};
	channel_->report_change(side_);
}

void Channel::report_room(unsigned side)
{
	Inbox &sender = inboxes_[1 - side];
	if (!std::exchange(inboxes_[side].awaited, false) || !sender.reader)
		return;
	sender.room = true;
	sender.reader->signal();
}

void Channel::report_change(unsigned side)
{
	Inbox &other = inboxes_[1 - side];
	if (!other.reader)
		return;
	other.peer_changed = true;
	other.reader->signal();
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

std::shared_ptr<const Frame> Channel::End::take()
{
	const MutexLock lock(channel_->mutex_);
	Inbox &inbox = channel_->inboxes_[side_];
	if (inbox.frames.empty())
		return nullptr;
	FramePtr frame = std::move(inbox.frames.front());
	inbox.frames.pop_front();
	inbox.bytes -= frame->size() + kOverhead;
	channel_->report_room(side_);
	return frame;
}

bool Channel::End::peer_is_attached() const
{
	return channel_->is_attached(side_ == kCard ? kNetwork : kCard);
}

void Channel::End::drain()
{
	std::vector<FramePtr> batch;
	bool room = false, frames = false, peer_changed = false;
	{
		const MutexLock lock(channel_->mutex_);
		Inbox &inbox = channel_->inboxes_[side_];
		while (handlers_.receive && !inbox.frames.empty() && batch.size() < kSlice) {
			inbox.bytes -= inbox.frames.front()->size() + kOverhead;
			batch.push_back(std::move(inbox.frames.front()));
			inbox.frames.pop_front();
		}
		frames = !inbox.frames.empty();
		if (frames && handlers_.receive)
			wakeup_.signal();
		room = std::exchange(inbox.room, false);
		if (!frames)
			peer_changed = std::exchange(inbox.peer_changed, false);
		if (handlers_.receive)
			channel_->report_room(side_);
	}
	for (const FramePtr &frame : batch)
		handlers_.receive(frame);
	if (frames && handlers_.frames)
		handlers_.frames();
	if (room && handlers_.room)
		handlers_.room();
	if (peer_changed && handlers_.peer_changed)
		handlers_.peer_changed();
}

} // namespace weft::ethernet
