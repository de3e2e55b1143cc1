/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * What a consumer holds and is told of by a callback: it may be given up while the callback runs.
 */
#pragma once

#include <kern/completion.hpp>

namespace mgmt::sa
{

/* All but the waiting is under the owner's lock. */
class Told
{
public:
	void begin_locked() { telling_ = true; }
	/*
	 * The callback has returned. True if the consumer waits in let_go(): the object is the
	 * consumer's.
	 */
	bool end_locked()
	{
		telling_ = false;
		if (leaving_)
			over_.complete();
		return leaving_;
	}
	/* The consumer gives it up. True if it is to wait. */
	bool leave_locked()
	{
		leaving_ = true;
		return telling_;
	}
	/* Context: process, not from the callback. */
	void wait() { over_.wait(); }

private:
	bool telling_ = false;
	bool leaving_ = false;
	kern::Completion over_;
};

} // namespace mgmt::sa
