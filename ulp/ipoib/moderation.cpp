// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements Moderation, which measures the traffic of a CQ and sets the delay that Moderator
// chooses.
#include "moderation.hpp"

#include <kern/time.hpp>

namespace ipoib
{

void Moderation::attach(ib_cq *cq)
{
	kern::Guard guard(lock_);
	cq_ = cq;
	/* A device without moderation raises an event for each completion. */
	(void)apply_locked(wanted_);
}

void Moderation::detach()
{
	kern::Guard guard(lock_);
	cq_ = nullptr;
}

int Moderation::apply_locked(const kern_coalesce &wanted)
{
	if (!cq_)
		return 0;
	const Moderator::Level level = chosen();
	return wanted.adaptive ? rdma_set_cq_moderation(cq_, level.frames, level.usecs)
			       : rdma_set_cq_moderation(cq_, static_cast<u16>(wanted.frames),
							static_cast<u16>(wanted.usecs));
}

int Moderation::set(const kern_coalesce &wanted)
{
	if (wanted.usecs > 0xffff || wanted.frames > 0xffff)
		return -EINVAL;
	kern::Guard guard(lock_);
	const int status = apply_locked(wanted);
	if (!status)
		wanted_ = wanted;
	return status;
}

kern_coalesce Moderation::get()
{
	kern::Guard guard(lock_);
	const Moderator::Level level = chosen();
	return wanted_.adaptive ? kern_coalesce{level.usecs, level.frames, true} : wanted_;
}

void Moderation::end_interval(u64 completions, u64 bytes)
{
	const u64 now = kern::now_ns();
	if (now - begin_.ns < Moderator::interval_ns)
		return;
	const u32 events = __atomic_load_n(&events_, __ATOMIC_RELAXED);
	const u32 level =
		moderator_.interval(now - begin_.ns, events - begin_.events,
				    completions - begin_.completions, bytes - begin_.bytes);
	begin_ = {now, completions, bytes, events};
	if (level == level_)
		return;
	__atomic_store_n(&level_, level, __ATOMIC_RELAXED);
	/* A command to the device may sleep. */
	apply_work_.queue();
}

/* Sets the delay that Moderator has chosen. Context: work queue. */
void Moderation::apply()
{
	kern::Guard guard(lock_);
	/* If the device refuses the change, its settings remain. */
	if (wanted_.adaptive)
		(void)apply_locked(wanted_);
}

} // namespace ipoib
