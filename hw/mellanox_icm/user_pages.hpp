// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Pins a program's memory, and describes it to the card by a page list.
#pragma once
#include <kern/user_memory.hpp>
#include "mtt.hpp"

namespace mellanox_icm
{

/*
 * Pinned memory and its page list. The card must not use the memory any more when this object is
 * destroyed.
 */
class UserPages
{
public:
	UserPages() = default;
	/*
	 * Pins the memory, so that the byte at `start` gets the address `iova` in the list.
	 * Context: process of the program. Errors: those of kern::UserMemory and MttRange.
	 */
	static kern::Result<UserPages> create(struct device *dma_device, MttTable &mtts, u64 start,
					      u64 length, u64 iova, bool must_write);

	const kern::UserMemory &memory() const { return memory_; }
	u32 page_shift() const { return page_shift_; }
	u64 mtt_offset() const { return mtt_.offset(); }
	explicit operator bool() const { return static_cast<bool>(memory_); }

private:
	/* Contexts and memory keys cannot describe larger pages. */
	static constexpr unsigned int max_page_shift = 31;

	kern::UserMemory memory_;
	MttRange mtt_;
	u32 page_shift_ = 0;
};

} // namespace mellanox_icm
