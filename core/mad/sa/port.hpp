/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Accesses the subnet administrator for the consumers of one port. It holds the agent that sends
 * queries, and the address of the subnet manager, which is updated when the SM changes.
 */
#pragma once

#include "inform.hpp"
#include "multicast.hpp"

#include <kern/back_off.hpp>
#include "../special_qp.hpp"

namespace mad::sa
{

/* Address of the SM. A query keeps the address that it was sent to until the query ends. */
class SmAddress : public kern::RefCounted<SmAddress>
{
public:
	SmAddress(ib_ah *ah, u16 pkey_index, u32 lid, u8 lmc)
	    : ah_(ah), pkey_index_(pkey_index), lid_(lid), lids_(1u << lmc)
	{
	}
	~SmAddress() { rdma_destroy_ah(ah_, 0); }
	ib_ah *ah() const { return ah_; }
	/* Index of the default partition, which packets to the SM use. */
	u16 pkey_index() const { return pkey_index_; }
	/*
	 * Returns true if the LID is one of the SM's LIDs. The SM may send from any of them (IBA
	 * 4.1.3).
	 */
	bool has_lid(u32 lid) const { return lid >= lid_ && lid - lid_ < lids_; }

private:
	ib_ah *const ah_;
	const u16 pkey_index_;
	const u32 lid_;
	const u32 lids_;
};

class Port
{
public:
	/* Context: process. Errors: ENOMEM, and those of ib_query_port(). */
	static kern::Result<kern::Owned<Port>> create(SpecialQp &gsi);
	explicit Port(SpecialQp &gsi);
	/* There must be no queries or memberships left. */
	~Port();

	ib_device *device() const { return gsi_.device(); }
	u32 port_num() const { return gsi_.port_num(); }
	Agent &agent() { return *agent_; }
	Groups &groups() { return groups_; }
	Informs &informs() { return informs_; }

	/* Returns an empty reference while no SM is known. Context: any. */
	kern::Ref<SmAddress> sm_address();
	/*
	 * If the SM's address is to be queried, because of an event or because the last query
	 * failed, does so now. A consumer that handles the same event would otherwise find no
	 * address. Context: process; not under a lock that refresh() takes.
	 */
	void finish_refresh()
	{
		__atomic_store_n(&is_forced_, 1, __ATOMIC_RELAXED);
		refresh_work_.flush();
	}
	/*
	 * Returns a transaction ID whose responses are passed to this port's agent. Context: any.
	 */
	u64 next_tid();

	/* Context: any context in which an event handler may be called. */
	void on_event(ib_event_type event);
	/* Handles a report from the SA. Context: process. */
	void on_report(const Receive &receive);

private:
	bool is_from_manager(const Receive &receive, const ib::Notice &notice);
	void refresh();
	kern::Result<kern::Ref<SmAddress>> find_manager();

	SpecialQp &gsi_;
	kern::Owned<Agent> agent_;
	kern::Locked<kern::Ref<SmAddress>, kern::IrqSpinLock> sm_address_{
		KERN_LOCK_CLASS("sa.sm_address")};
	u32 last_tid_ = 0;
	u32 rejoin_due_ = 0;
	u32 is_forced_ = 0;      /* the next refresh() is due to finish_refresh() */
	kern::BackOff back_off_; /* delays of the retries of refresh() */
	kern::DelayedWork refresh_work_{kern::method<&Port::refresh>, this};
	/* Declared after refresh_work_, and thus destroyed before it, because they flush it. */
	Groups groups_{*this};
	Informs informs_{*this};
};

} // namespace mad::sa
