// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements shared receive queues as a linked list of descriptors, which the card follows by their
// addresses.
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
	/*
	 * Creates the SRQ. udata: of a program, whose memory then contains the ring; nullptr for a
	 * kernel's SRQ. May sleep.
	 */
	kern::Result<> start(ib_srq_init_attr &attr, ib_udata *udata);
	void stop();

	/*
	 * Frees an entry that the card has used. address: the lower half of the entry's address.
	 * Returns the length of its request, or not_posted. Context: any; the lock is taken inside
	 * that of a CQ.
	 */
	s64 complete(u32 address, u64 &id)
	{
		return complete_entry((address - base_) >> log_stride_, id);
	}

private:
	friend SharedReceives;
	/* These write the locations of the ring and its record into the context. */
	kern::Result<> create_kernel_ring(u8 *context);
	kern::Result<> use_user_ring(u8 *context, ib_udata &udata);
	void put_link(u32 index, u32 next)
	{
		static_assert(sizeof(wire::WqeNext) == head_bytes);
		reinterpret_cast<wire::WqeNext *>(descriptor(index))->next_word =
			(base_ + (next << log_stride_)) & wire::WqeNext::address_mask;
	}

	u32 base_ = 0; // the lower half of the ring's address
	kern::DmaBuffer buffer_;
	Record record_held_;
	// Used for a program's SRQ instead of kernel memory and a record.
	UserRegion user_region_;
	UserRecord user_record_;
	mellanox_icm::EventCapacity event_capacity_;
	IcmHold context_;
	bool live_ = false;
};

} // namespace mthca
