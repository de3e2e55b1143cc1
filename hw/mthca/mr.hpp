// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements memory regions. The card supports neither fast registration nor windows, so a memory
// region of a kernel consumer covers all memory, addressed by DMA addresses.
#pragma once
#include <kern/list.hpp>
#include <rdma/driver.hpp>
#include "../mellanox_icm/protection_entry.hpp"
#include "../mellanox_icm/user_pages.hpp"
#include "family.hpp"

namespace mthca
{

class Hca;
class UserContext;

/*
 * Creates a key for all memory in a protection domain. access: as in the verbs. May sleep. Errors:
 * ENOSPC, ENOMEM, those of commands.
 */
kern::Result<ProtectionEntry> open_all_memory(Hca &hca, u32 pd, int access);

class Mr
{
public:
	using Object = rdma::DriverObject<ib_mr, Mr>;
	static Mr &of(ib_mr *mr) { return Object::state(mr); }

	Mr(Hca &hca, ib_mr &verbs) : verbs_(verbs), hca_(hca) {}
	~Mr() { kern::ignore(stop()); }
	kern::Result<> start_dma(int access);
	/*
	 * Registers a program's memory. context: the program's context, whose queues may then use
	 * the region, or nullptr. Context: process of the program.
	 */
	kern::Result<> start_user(UserContext *context, u64 start, u64 length, u64 iova,
				  int access);
	/* Deregisters the region. Errors: EBUSY, without effect, if a queue uses it. May sleep. */
	kern::Result<> stop();

	/* Allows queues of the program to use the region, until stop(). */
	void allow_queues(UserContext &context);
	u32 key() const { return entry_.key(); }
	u32 pd() const { return pd_number(verbs_.pd); }
	UserContext *context() const { return context_; }

	// Used by the context, with its lock held: the region's node in its list, and the number of
	// queues that use the region.
	kern::ListNode node;
	u32 queues = 0;

private:
	ib_mr &verbs_;
	Hca &hca_;
	UserContext *context_ = nullptr; // the context whose list contains it
	// The card uses the pages until the entry is closed.
	UserPages pages_;
	ProtectionEntry entry_;
};

} // namespace mthca
