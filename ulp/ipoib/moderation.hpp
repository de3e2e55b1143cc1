/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Moderation of a completion queue: the time for which events are delayed. Adaptive moderation
 * occasionally tries the next longer delay and keeps it if that gives fewer events for the same
 * traffic. It uses no delay if events carry hardly more than one completion: then each completion
 * is waited for, and a delay only adds latency.
 */
#pragma once

#include <kern/lock.hpp>
#include <kern/netdev.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace ipoib
{

/* The decision, free of clocks and queues. */
class Moderator
{
public:
	struct Level {
		u16 usecs, frames;
	};
	static constexpr Level levels[] = {{0, 0}, {8, 8}, {16, 32}, {32, 64}, {64, 128}};
	static constexpr u32 level_count = sizeof(levels) / sizeof(levels[0]);
	/* An interval has so many events, and no less time than this. */
	static constexpr u32 interval_events = 64;
	static constexpr u64 interval_ns = 1'000'000;
	/* One that took longer than this had traffic too thin to be moderated. */
	static constexpr u64 thin_ns = 100'000'000;
	/* A try that failed is repeated after twice as many intervals as the last, up to this. */
	static constexpr u32 rest_limit = 256;

	/* An interval has ended. Returns the level that applies from now on. */
	u32 interval(u64 ns, u64 events, u64 completions, u64 bytes);
	u32 level() const { return level_; }

private:
	u32 fall_back(u32 level);

	u32 level_ = 0;
	u32 rest_ = 1;   /* between tries */
	u32 rested_ = 0; /* intervals since the last */
	bool trying_ = false;
	/* Rates in the interval before a try: per millisecond, and events per 1024 completions. */
	u64 former_bytes_ = 0;
	u64 former_completions_ = 0;
	u64 former_events_ = 0;
};

/* The moderation of one CQ. */
class Moderation
{
public:
	Moderation() = default;

	/*
	 * Moderates a CQ by the settings, as far as its device can; the CQ must exist until
	 * detach(). Context: process.
	 */
	void attach(ib_cq *cq);
	void detach();
	/* No NAPI may run. After this, no command is sent to the device. Context: process. */
	void stop() { apply_work_.cancel(); }

	/*
	 * Sets the moderation that ethtool requests, also for CQs attached later. Context: process.
	 * Errors: EINVAL for values that no CQ supports; those of rdma_set_cq_moderation().
	 */
	int set(const kern_coalesce &wanted);
	/* Returns the settings in force. Context: process. */
	kern_coalesce get();

	/* An event came from the CQ. Context: its handler. */
	void on_event() { __atomic_store_n(&events_, events_ + 1, __ATOMIC_RELAXED); }
	/*
	 * All completions that were there are taken: so many, of so many bytes, since the
	 * beginning. Context: NAPI of the CQ.
	 */
	void idle(u64 completions, u64 bytes)
	{
		if (__atomic_load_n(&events_, __ATOMIC_RELAXED) - begin_.events >=
		    Moderator::interval_events)
			end_interval(completions, bytes);
	}

private:
	struct Sample {
		u64 ns, completions, bytes;
		u32 events;
	};

	void end_interval(u64 completions, u64 bytes);
	void apply();
	int apply_locked(const kern_coalesce &wanted) KERN_REQUIRES(lock_);

	Moderator::Level chosen() const
	{
		return Moderator::levels[__atomic_load_n(&level_, __ATOMIC_RELAXED)];
	}

	kern::Mutex lock_{KERN_LOCK_CLASS("ipoib.moderation")}; /* for what the device is told */
	ib_cq *cq_ KERN_GUARDED_BY(lock_) = nullptr;
	kern_coalesce wanted_ KERN_GUARDED_BY(lock_){0, 0, true};
	u32 level_ = 0; /* of moderator_ */
	u32 events_ = 0;

	/* Under NAPI. */
	Sample begin_{};
	Moderator moderator_;

	kern::Work apply_work_{kern::method<&Moderation::apply>, this};
};

} // namespace ipoib
