// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Passes frames between the loop of an Ethernet segment and the loop of a card or trunk attached to
// it. Each loop has one end of the channel, which can be opened and closed while the other stays
// open.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.hpp"
#include "base/loop.hpp"
#include "net/ethernet/frame.hpp"

namespace weft::ethernet
{

class Channel
{
public:
	enum Side : unsigned { kNetwork = 0, kCard = 1 };
	// Limit of the bytes that wait for one side's loop. A frame that does not fit is dropped as
	// a whole.
	static constexpr std::size_t kMostQueued = 512 << 10;
	// Overhead that is added to the length of each frame.
	static constexpr std::size_t kOverhead = 64;

	// Returns true if @side has opened its end. Thread-safe.
	bool is_attached(Side side) const;

	// End - one side's end of the channel. A side has at most one at a time. It is created,
	// used and destroyed on @loop's thread.
	class End
	{
	public:
		struct Handlers {
			// Called with each frame from the other side, for a bounded number of
			// frames at a time. If it is empty, frames wait for take().
			std::function<void(const FramePtr &)> receive{};
			// Called when there may be space again, after has_room() has returned
			// false.
			std::function<void()> room{};
			// Called when there may be frames for take().
			std::function<void()> frames{};
			// Called when the other side has opened or closed its end, after the frames
			// that it had sent before.
			std::function<void()> peer_changed{};
		};
		End(std::shared_ptr<Channel> channel, Side side, Loop &loop, Handlers handlers);
		End(std::shared_ptr<Channel> channel, Side side, Loop &loop,
		    std::function<void(const FramePtr &)> receive, std::function<void()> room = {});
		~End();
		End(const End &) = delete;
		End &operator=(const End &) = delete;

		// Sends a frame. Returns false if the other side is closed or there is no space.
		bool send(const FramePtr &frame);
		// Returns true if any frame would fit. Also returns true if the other side is
		// closed, because frames are then dropped.
		bool has_room();
		// Returns the next frame from the other side, or null if there is none.
		std::shared_ptr<const Frame> take();
		bool peer_is_attached() const;

	private:
		// Number of frames that are delivered before the loop handles other events.
		static constexpr std::size_t kSlice = 64;

		void drain();

		const std::shared_ptr<Channel> channel_;
		const Side side_;
		const Handlers handlers_;
		Wakeup wakeup_;
	};

private:
	// Frames that wait for one side.
	struct Inbox {
		std::deque<FramePtr> frames;
		std::size_t bytes = 0;
		Wakeup *reader = nullptr;
		bool awaited = false; // the sender waits for space
		// the other inbox, for which this side has waited, may have space
		bool room = false;
		bool peer_changed = false; // the other side has opened or closed its end
	};

	// Notifies the sender that waits for space in a side's inbox.
	void report_room(unsigned side) WEFT_REQUIRES(mutex_);
	// Notifies the other side that @side has opened or closed its end.
	void report_change(unsigned side) WEFT_REQUIRES(mutex_);

	mutable Mutex mutex_;
	std::array<Inbox, 2> inboxes_ WEFT_GUARDED_BY(mutex_);
};

} // namespace weft::ethernet
