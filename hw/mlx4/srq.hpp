// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements shared receive queues of a ConnectX: creation, limit, and posting of receives.
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/mlx4/contexts.hpp>
#include "../mellanox_icm/shared_receives.hpp"
#include "hca.hpp"
#include "qp.hpp"
#include "user_queue.hpp"

namespace mlx4
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
	 * kernel's SRQ.
	 */
	kern::Result<> start(ib_srq_init_attr &attr, ib_udata *udata);
	void stop();

	/*
	 * Frees an entry that the card has used. Returns the length of its request, or not_posted.
	 * Context: any; the lock is taken inside that of a CQ.
	 */
	s64 complete(u32 index, u64 &id) { return complete_entry(index, id); }

	/* Node of an XRC SRQ in the list of its domain. */
	kern::ListNode domain_node;

private:
	kern::Result<> create_kernel_ring();
	kern::Result<> use_user_ring(ib_udata &udata);
	QueuePlace place() const
	{
		return {hca_.uar_page(), buffer_.log_page_size(), buffer_.mtt_offset(),
			doorbell_.bus_address()};
	}
	friend SharedReceives;
	void put_link(u32 index, u32 next)
	{
		static_assert(sizeof(wire::SrqNext) == head_bytes);
		reinterpret_cast<wire::SrqNext *>(descriptor(index))->next_index =
			static_cast<u16>(next);
	}

	QueueBuffer buffer_;
	DoorbellRecord doorbell_;
	// Used for a program's SRQ, to which the kernel does not post, instead of buffer_ and
	// doorbell_.
	UserQueue user_;
	mellanox_icm::EventCapacity event_capacity_;
	IcmHold context_, protection_;
	bool live_ = false;
};

} // namespace mlx4
