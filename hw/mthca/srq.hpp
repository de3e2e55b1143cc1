// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Shared receive queues: a list through the descriptors, which the card follows by their addresses.
#pragma once
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/mthca/contexts.hpp>
#include <hw/mthca/wqe.hpp>
#include "../mellanox_icm/shared_receives.hpp"
#include "hca.hpp"
#include "user_context.hpp"

namespace mthca
{

class Srq : public SharedReceives<Srq, Hca, wire::SrqContext>
{
public:
	using Object = rdma::DriverObject<ib_srq, Srq>;
	static Srq &of(ib_srq *srq) { return Object::state(srq); }

	Srq(Hca &hca, ib_srq &verbs);
	~Srq();
	/* udata: of a program, in whose memory the ring then lies. May sleep. */
	kern::Result<> start(ib_srq_init_attr &attr, ib_udata *udata);
	void stop();

	/*
	 * The request in an entry that the card has used, by its address' lower half, which is free
	 * again: its length, or not_posted. Any context; the lock is taken inside that of a CQ.
	 */
	s64 complete(u32 address, u64 &id)
	{
		return complete_entry((address - base_) >> log_stride_, id);
	}

private:
	friend SharedReceives;
	/* Each writes the positions of the ring and its record into the context. */
	kern::Result<> make_own_ring(u8 *context);
	kern::Result<> take_user_ring(u8 *context, ib_udata &udata);
	void put_link(u32 index, u32 next)
	{
		static_assert(sizeof(wire::WqeNext) == head_bytes);
		reinterpret_cast<wire::WqeNext *>(descriptor(index))->next_word =
			(base_ + (next << log_stride_)) & wire::WqeNext::address_mask;
	}

	u32 base_ = 0; // the lower half of the ring's address
	kern::DmaBuffer buffer_;
	Record record_held_;
	// A program's queue uses this instead of kernel memory and a record.
	UserRegion user_region_;
	UserRecord user_record_;
	mellanox_icm::EventCapacity event_capacity_;
	IcmHold context_;
	bool live_ = false;
};

} // namespace mthca
