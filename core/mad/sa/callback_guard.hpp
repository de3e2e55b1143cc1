/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Keeps an object valid while its callback runs: a consumer that releases the object meanwhile
 * waits until the callback has returned.
 */
#pragma once

#include <kern/completion.hpp>

namespace mad::sa
{

/* All functions except wait() are called with the owner's lock held. */
class CallbackGuard
{
public:
	void begin_locked() { in_callback_ = true; }
	/*
	 * Called after the callback has returned. Returns true if the consumer is waiting to
	 * release the object: the object then belongs to the consumer.
	 */
	bool end_locked()
	{
		in_callback_ = false;
		// The consumer frees the object as soon as it wakes up, so read the member before
		// complete().
		const bool leaving = leaving_;
		if (leaving)
			over_.complete();
		return leaving;
	}
	/*
	 * Called when the consumer releases the object. Returns true if the consumer must call
	 * wait().
	 */
	bool leave_locked()
	{
		leaving_ = true;
		return in_callback_;
	}
	/* Context: process, not from the callback. */
	void wait() { over_.wait(); }

private:
	bool in_callback_ = false;
	bool leaving_ = false;
	kern::Completion over_;
};

} // namespace mad::sa
