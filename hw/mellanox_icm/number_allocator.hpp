// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Allocates the numbers of hardware objects: QPNs, CQNs, key indices and so on.
#pragma once
#include <kern/lock.hpp>
#include <kern/memory.hpp>

namespace mellanox_icm
{

/*
 * Allocates each number in [first, end) to one owner at a time. A freed number is allocated again
 * only after all other free numbers, so that a late packet or event for a destroyed object does not
 * reach a new one.
 *
 * Context: any; the lock is a leaf.
 */
class NumberAllocator
{
public:
	/* Errors: EINVAL for an empty range, ENOMEM. May sleep. */
	static kern::Result<kern::Owned<NumberAllocator>> create(u32 first, u32 end)
	{
		if (first >= end)
			return kern::Error{-EINVAL};
		auto words = KERN_TRY(kern::make_array<u64>(kern::Gfp::kernel, (end + 63) / 64));
		return kern::adopt(new (kern::Gfp::kernel)
					   NumberAllocator(std::move(words), first, end));
	}

	/* Errors: ENOSPC. */
	kern::Result<u32> allocate()
	{
		kern::Guard guard(lock_);
		u32 number = find(next_, end_);
		if (number == end_)
			number = find(first_, next_);
		if (number == end_ || taken(number))
			return kern::Error{-ENOSPC};
		words_[number / 64] |= u64{1} << number % 64;
		next_ = number + 1 == end_ ? first_ : number + 1;
		return number;
	}

	void free(u32 number)
	{
		kern::Guard guard(lock_);
		if (KERN_WARN_ON(number < first_ || number >= end_ || !taken(number)))
			return;
		words_[number / 64] &= ~(u64{1} << number % 64);
	}

	u32 first() const { return first_; }
	u32 end() const { return end_; }

private:
	NumberAllocator(kern::OwnedArray<u64> words, u32 first, u32 end)
	    : lock_(KERN_LOCK_CLASS("mellanox.numbers")), words_(std::move(words)), first_(first),
	      end_(end), next_(first)
	{
	}

	bool taken(u32 number) const { return words_[number / 64] >> number % 64 & 1; }

	/* Returns the first free number in [from, to), or end_. */
	u32 find(u32 from, u32 to) const
	{
		while (from < to) {
			const u64 free = ~words_[from / 64] >> from % 64;
			if (free) {
				from += __builtin_ctzll(free);
				return from < to ? from : end_;
			}
			from = (from / 64 + 1) * 64;
		}
		return end_;
	}

	kern::IrqSpinLock lock_;
	kern::OwnedArray<u64> words_;
	u32 first_;
	u32 end_;
	u32 next_;
};

/* A number that is freed when its owner is destroyed. */
class Number
{
public:
	Number() = default;
	static kern::Result<Number> create(NumberAllocator &allocator)
	{
		return Number(allocator, KERN_TRY(allocator.allocate()));
	}
	Number(Number &&other) noexcept
	    : allocator_(std::exchange(other.allocator_, nullptr)), value_(other.value_)
	{
	}
	Number &operator=(Number &&other) noexcept
	{
		std::swap(allocator_, other.allocator_);
		std::swap(value_, other.value_);
		return *this;
	}
	~Number()
	{
		if (allocator_)
			allocator_->free(value_);
	}

	u32 value() const { return value_; }
	explicit operator bool() const { return allocator_ != nullptr; }

private:
	Number(NumberAllocator &allocator, u32 value) : allocator_(&allocator), value_(value) {}

	NumberAllocator *allocator_ = nullptr;
	u32 value_ = 0;
};

} // namespace mellanox_icm
