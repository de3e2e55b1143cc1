// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory regions. The card has neither fast registration nor windows: a kernel region covers all
// memory, by DMA address.
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
 * Creates a key of all memory for a domain. access: as in the verbs. May sleep. Errors: ENOSPC,
 * ENOMEM, those of commands.
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
	 * A program's memory; context: of the program, which may then have queues in it, or
	 * nullptr. Context: process, the program's.
	 */
	kern::Result<> start_user(UserContext *context, u64 start, u64 length, u64 iova,
				  int access);
	/* Errors: EBUSY while a queue lies in it, and nothing has changed. May sleep. */
	kern::Result<> stop();

	/* Queues of the program may lie in it from now on, until stop(). */
	void lend(UserContext &context);
	u32 key() const { return entry_.key(); }
	u32 pd() const { return pd_number(verbs_.pd); }
	UserContext *context() const { return context_; }

	// The context's, under its lock: where it is in its list, and how many queues lie in it.
	kern::ListNode node;
	u32 queues = 0;

private:
	ib_mr &verbs_;
	Hca &hca_;
	UserContext *context_ = nullptr; // the context whose list contains it
	// The card's until the entry is closed.
	UserPages pages_;
	ProtectionEntry entry_;
};

} // namespace mthca
