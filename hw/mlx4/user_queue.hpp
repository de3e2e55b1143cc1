// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Manages a queue in a program's memory, at the address that the user library has passed to the
// driver.
#pragma once
#include "../mellanox_icm/user_pages.hpp"
#include "family.hpp"
#include "user_context.hpp"

namespace mlx4
{

/* Fields of a context that locate a queue of the kernel or of a program. */
struct QueuePlace {
	u32 uar_page;
	u32 log_page_size; // minus 12
	u64 mtt_offset;
	u64 doorbell_record;
};

class UserQueue
{
public:
	UserQueue() = default;
	/*
	 * Pins the memory of a queue and its doorbell record. address, bytes: the queue; doorbell,
	 * doorbell_bytes: the record; with 0 bytes there is none. must_write: the card writes into
	 * the queue. Errors: EINVAL for wrong alignment (that of the queue is a page); those of
	 * UserPages and UserDoorbell. Context: process of the program.
	 */
	static kern::Result<UserQueue> create(Hca &hca, UserContext &context, u64 address,
					      u64 bytes, u64 doorbell, u32 doorbell_bytes,
					      bool must_write);
	/*
	 * make_pages() pins other memory for a queue. exchange() makes it the queue's memory, and
	 * returns the former memory, which must be kept until the card does not use it any more.
	 */
	static kern::Result<UserPages> make_pages(Hca &hca, u64 address, u64 bytes,
						  bool must_write);
	UserPages exchange(UserPages pages) { return std::exchange(pages_, std::move(pages)); }

	QueuePlace place() const
	{
		return {.uar_page = uar_page_,
			.log_page_size = pages_ ? pages_.page_shift() - 12 : 0,
			.mtt_offset = pages_ ? pages_.mtt_offset() : 0,
			.doorbell_record = doorbell_.bus_address()};
	}

private:
	UserPages pages_;
	UserDoorbell doorbell_;
	u32 uar_page_ = 0;
};

} // namespace mlx4
