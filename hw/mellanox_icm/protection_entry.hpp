// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Writes the entries of the card's memory protection table (MPT), one for each memory key.
#pragma once
#include <rdma/ib_verbs.h>
#include <hw/mellanox_icm/contexts.hpp>
#include "icm_table.hpp"
#include "number_allocator.hpp"

namespace mellanox_icm
{

/*
 * A memory key's entry in the card's protection table. The card owns it from SW2HW_MPT to
 * HW2SW_MPT.
 */
class ProtectionEntry
{
public:
	ProtectionEntry() = default;
	ProtectionEntry(ProtectionEntry &&other) noexcept
	    : commands_(std::exchange(other.commands_, nullptr)), number_(std::move(other.number_)),
	      hold_(std::move(other.hold_)), live_(std::exchange(other.live_, false))
	{
	}
	ProtectionEntry &operator=(ProtectionEntry &&other) noexcept
	{
		std::swap(commands_, other.commands_);
		number_ = std::move(other.number_);
		hold_ = std::move(other.hold_);
		std::swap(live_, other.live_);
		return *this;
	}
	~ProtectionEntry() { kern::ignore(close()); }

	/*
	 * Allocates an entry. table: the card's protection table, which the numbers index. Errors:
	 * ENOSPC, ENOMEM, those of commands. May sleep.
	 */
	static kern::Result<ProtectionEntry> create(CommandInterface &commands,
						    NumberAllocator &numbers, IcmTable &table);
	/*
	 * Passes the entry to the card. entry: MptEntry without its key. Errors: those of commands.
	 * May sleep.
	 */
	kern::Result<> open(const u8 *entry);
	/*
	 * Takes the entry back from the card. Errors: EBUSY if windows are bound to the region; the
	 * card then keeps the entry. May sleep.
	 */
	kern::Result<> close();
	/* Returns the first key. Later registrations change its lowest byte. */
	u32 key() const { return number_.value() << 8; }

private:
	CommandInterface *commands_ = nullptr;
	Number number_;
	IcmHold hold_;
	bool live_ = false;
};

/* Sets the fields common to all kinds of regions. `entry` must be zero. access: as in the verbs. */
void put_region(u8 *entry, u32 pd, int access);
/*
 * Sets the fields of a region of all memory, addressed by bus addresses. Otherwise as put_region().
 */
void put_all_memory(u8 *entry, u32 pd, int access);

} // namespace mellanox_icm
