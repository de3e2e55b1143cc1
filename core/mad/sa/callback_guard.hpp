/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Protects an object with a callback: its consumer may release it while the callback runs.
 */
#pragma once

#include <kern/completion.hpp>

namespace mad::sa
{

/* Except for waiting, all functions are called with the owner's lock held. */
class CallbackGuard
{
public:
	void begin_locked() { in_callback_ = true; }
	/*
	 * The callback has returned. True if the consumer waits in release_stream(): the object is
	 * the consumer's.
	 */
	bool end_locked()
	{
		in_callback_ = false;
		// Woken, the consumer frees the object at once.
		const bool leaving = leaving_;
		if (leaving)
			over_.complete();
		return leaving;
	}
	/* The consumer releases the object. Returns true if it must wait. */
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
