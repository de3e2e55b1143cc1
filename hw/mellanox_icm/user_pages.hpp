// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Pins a program's memory, and describes it to the card by page lists.
#pragma once
#include <kern/user_memory.hpp>
#include "mtt.hpp"

namespace mellanox_icm
{

/*
 * Pinned memory, and the page list by which the card finds it. The card no longer uses it when it
 * ends.
 */
class UserPages
{
public:
	UserPages() = default;
	/*
	 * The byte at `start` gets the address `iova` in the list. Context:
	 * process, the program's.
	 * Errors: those of kern::UserMemory and MttRange.
	 */
	static kern::Result<UserPages> create(struct device *dma_device, MttTable &mtts, u64 start,
					      u64 length, u64 iova, bool must_write);

	const kern::UserMemory &memory() const { return memory_; }
	u32 page_shift() const { return page_shift_; }
	u64 mtt_offset() const { return mtt_.offset(); }
	explicit operator bool() const { return static_cast<bool>(memory_); }

private:
	/* Contexts and keys cannot describe larger pages. */
	static constexpr unsigned int max_page_shift = 31;

	kern::UserMemory memory_;
	MttRange mtt_;
	u32 page_shift_ = 0;
};

} // namespace mellanox_icm
