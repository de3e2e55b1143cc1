/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Implements interrupt moderation for a completion queue: the device delays completion events, so
 * that one event stands for several completions. Adaptive moderation occasionally tries the next
 * longer delay, and keeps it if the same traffic then causes fewer events. It uses no delay if
 * there are fewer than two completions per event: the sender then probably waits for each
 * completion, so a delay only adds latency.
 */
#pragma once

#include <kern/lock.hpp>
#include <kern/netdev.hpp>
#include <kern/work.hpp>
#include <rdma/ib_verbs.h>

namespace ipoib
{

/* The decision; it uses neither a clock nor a queue, so it can be tested alone. */
class Moderator
{
public:
	struct Level {
		u16 usecs, frames;
	};
	static constexpr Level levels[] = {{0, 0}, {8, 8}, {16, 32}, {32, 64}, {64, 128}};
	static constexpr u32 level_count = sizeof(levels) / sizeof(levels[0]);
	/* An interval ends when it has this many events and has lasted this long. */
	static constexpr u32 interval_events = 64;
	static constexpr u64 interval_ns = 1'000'000;
	/* In an interval that is longer than this, the traffic is too sparse for moderation. */
	static constexpr u64 sparse_ns = 100'000'000;
	/*
	 * After a failed attempt to use a longer delay, the number of intervals until the next
	 * attempt doubles, up to this limit.
	 */
	static constexpr u32 rest_limit = 256;

	/* Evaluates an interval that has ended. Returns the level that applies from now on. */
	u32 interval(u64 ns, u64 events, u64 completions, u64 bytes);
	u32 level() const { return level_; }

private:
	u32 fall_back(u32 level);

	u32 level_ = 0;
	u32 rest_ = 1;   /* number of intervals between attempts */
	u32 rested_ = 0; /* number of intervals since the last attempt */
	bool trying_ = false;
	/*
	 * Values of the interval before an attempt: bytes and completions per millisecond, and
	 * events per 1024 completions.
	 */
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
	 * Applies the settings to a CQ, as far as its device supports them. The CQ must exist until
	 * detach(). Context: process.
	 */
	void attach(ib_cq *cq);
	void detach();
	/*
	 * Ensures that no more commands are sent to the device. NAPI must be disabled. Context:
	 * process.
	 */
	void stop() { apply_work_.cancel(); }

	/*
	 * Stores and applies the moderation that ethtool requests; CQs that are attached later use
	 * it, too. Context: process. Errors: EINVAL for values that no CQ supports; those of
	 * rdma_set_cq_moderation().
	 */
	int set(const kern_coalesce &wanted);
	/* Returns the current settings. Context: process. */
	kern_coalesce get();

	/* Called for each event of the CQ. Context: the CQ's handler. */
	void on_event() { __atomic_store_n(&events_, events_ + 1, __ATOMIC_RELAXED); }
	/*
	 * Called when all completions have been polled. The arguments are totals since the start.
	 * Context: NAPI of the CQ.
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

	/* serializes commands to the device */
	kern::Mutex lock_{KERN_LOCK_CLASS("ipoib.moderation")};
	ib_cq *cq_ KERN_GUARDED_BY(lock_) = nullptr;
	kern_coalesce wanted_ KERN_GUARDED_BY(lock_){0, 0, true};
	u32 level_ = 0; /* copy of moderator_'s level for other contexts */
	u32 events_ = 0;

	/* Used in NAPI context only. */
	Sample begin_{};
	Moderator moderator_;

	kern::Work apply_work_{kern::method<&Moderation::apply>, this};
};

} // namespace ipoib
