// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Keeps completions of destroyed QPs until the consumer polls them (MGMT-09).
#pragma once
#include <kern/memory.hpp>
#include <rdma/driver.hpp>

namespace mellanox_icm
{

/*
 * Completions of destroyed QPs that the consumer has not polled, in memory that the card cannot
 * access. There is a slot for each entry of the CQ's ring. The slots are allocated with the ring,
 * so that destroying a QP needs no memory. A slot is addressed by the free-running index of its
 * entry.
 *
 * When the card has failed, the slots behind the last entry hold, in order, the requests of
 * destroyed QPs that the card did not flush. Entries that the card writes there later are ignored.
 *
 * Protected by the CQ's lock.
 */
class StaleCompletions
{
public:
	/* Creates it for a ring of 2^log_entries. Errors: ENOMEM. May sleep. */
	static kern::Result<StaleCompletions> create(u32 log_entries)
	{
		StaleCompletions made;
		made.slots_ = KERN_TRY(
			kern::make_array<Slot>(kern::Gfp::kernel, size_t{1} << log_entries));
		return made;
	}

	/* Saves the completion of the entry at this index. */
	void save(u32 index, const ib_wc &wc) { slot(index) = {wc, true}; }
	/* Returns the saved completion of an entry, once. Returns false if none was saved. */
	bool take(u32 index, ib_wc &wc)
	{
		Slot &from = slot(index);
		if (!from.saved)
			return false;
		wc = from.wc;
		from.saved = false;
		return true;
	}
	/* Moves the completion of an entry that has moved, possibly to another ring. */
	void move(u32 from, StaleCompletions &other, u32 to)
	{
		other.slot(to) = slot(from);
		slot(from).saved = false;
	}

	/*
	 * Called when the card has failed: the entry before @end is the last one. Only the first
	 * call has an effect.
	 */
	void set_end(u32 end)
	{
		if (!has_end_)
			end_ = first_flushed_ = last_flushed_ = end;
		has_end_ = true;
	}
	/*
	 * Returns the index behind the last valid entry. @end is the index that the owner bits of
	 * the ring's entries indicate.
	 */
	u32 clip(u32 consumer, u32 end) const
	{
		if (!has_end_ || static_cast<s32>(end - end_) <= 0)
			return end;
		return is_before_end(consumer) ? end_ : consumer;
	}
	/*
	 * Returns true if add_flushed() has a free slot. @consumer is the index of the next entry
	 * to poll.
	 */
	bool has_free_slot(u32 consumer) const
	{
		return last_flushed_ - (is_before_end(consumer) ? consumer : first_flushed_) <
		       slots_.size();
	}
	/* Appends a request that the card does not complete. Must be called after set_end(). */
	void add_flushed(const ib_wc &wc) { slot(last_flushed_++) = {wc, false}; }
	/* Returns up to @count of these requests. */
	int take_flushed(int count, ib_wc *wc)
	{
		int got = 0;
		while (got < count && first_flushed_ != last_flushed_)
			wc[got++] = slot(first_flushed_++).wc;
		return got;
	}

private:
	struct Slot {
		ib_wc wc;
		bool saved; // the completion of the entry with the same index was saved
	};

	Slot &slot(u32 index) { return slots_[index & (slots_.size() - 1)]; }
	bool is_before_end(u32 index) const { return static_cast<s32>(index - end_) < 0; }

	kern::OwnedArray<Slot> slots_;
	bool has_end_ = false;
	u32 end_ = 0;
	u32 first_flushed_ = 0, last_flushed_ = 0;
};

} // namespace mellanox_icm
