// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates ranges of page table entries (MTTs). Their sizes are powers of two, and they are
// naturally aligned.
#pragma once
#include <kern/bits.hpp>
#include <kern/lock.hpp>
#include <kern/memory.hpp>

namespace mellanox_icm
{

/*
 * A buddy allocator over entries 0 .. 2^log_size - 1. Each order has a bitmap of its free blocks.
 * Context: any; the lock is a leaf.
 */
class Buddy
{
public:
	static constexpr unsigned int max_order = 24;

	/* Errors: EINVAL if the size is out of range, ENOMEM. May sleep. */
	static kern::Result<kern::Owned<Buddy>> create(unsigned int log_size)
	{
		if (log_size > max_order)
			return kern::Error{-EINVAL};
		auto buddy = KERN_TRY(kern::adopt(new (kern::Gfp::kernel) Buddy(log_size)));
		for (unsigned int order = 0; order <= log_size; order++)
			buddy->free_[order] = KERN_TRY(kern::make_array<u64>(
				kern::Gfp::kernel,
				kern::div_round_up(1u << (log_size - order), 64)));
		buddy->mark(log_size, 0);
		return buddy;
	}

	/*
	 * Allocates 2^order entries, and returns the first. At least `keep` entries remain free.
	 * Errors: ENOSPC.
	 */
	kern::Result<u32> allocate(unsigned int order, u32 keep = 0)
	{
		kern::Guard guard(lock_);
		if (left_ < keep + (u64{1} << order))
			return kern::Error{-ENOSPC};
		for (unsigned int at = order; at <= log_size_; at++) {
			if (!count_[at])
				continue;
			u32 block = first(at);
			clear(at, block);
			// Split the block: the lower half is used, the upper half is free.
			while (at > order) {
				at--;
				block *= 2;
				mark(at, block + 1);
			}
			left_ -= 1u << order;
			return block << order;
		}
		return kern::Error{-ENOSPC};
	}

	void free(u32 entry, unsigned int order)
	{
		kern::Guard guard(lock_);
		left_ += 1u << order;
		u32 block = entry >> order;
		while (order < log_size_ && is_free(order, block ^ 1)) {
			clear(order, block ^ 1);
			block /= 2;
			order++;
		}
		if (!KERN_WARN_ON(is_free(order, block)))
			mark(order, block);
	}

	u32 size() const { return 1u << log_size_; }

private:
	explicit Buddy(unsigned int log_size)
	    : lock_(KERN_LOCK_CLASS("mellanox.buddy")), log_size_(log_size), left_(1u << log_size)
	{
	}

	bool is_free(unsigned int order, u32 block) const
	{
		return free_[order][block / 64] >> block % 64 & 1;
	}
	void mark(unsigned int order, u32 block)
	{
		free_[order][block / 64] |= u64{1} << block % 64;
		count_[order]++;
		if (block / 64 < hint_[order])
			hint_[order] = block / 64;
	}
	void clear(unsigned int order, u32 block)
	{
		free_[order][block / 64] &= ~(u64{1} << block % 64);
		count_[order]--;
	}
	/*
	 * Returns the first free block of an order that has one. No word below the hint has a bit
	 * set.
	 */
	u32 first(unsigned int order)
	{
		u32 word = hint_[order];
		while (!free_[order][word])
			word++;
		hint_[order] = word;
		return word * 64 + static_cast<u32>(__builtin_ctzll(free_[order][word]));
	}

	kern::IrqSpinLock lock_;
	unsigned int log_size_;
	u32 left_;
	kern::OwnedArray<u64> free_[max_order + 1];
	u32 count_[max_order + 1] = {};
	u32 hint_[max_order + 1] = {};
};

} // namespace mellanox_icm
