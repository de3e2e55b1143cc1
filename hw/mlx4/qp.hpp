// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Queue pairs of a ConnectX: creation, state transitions and posting of requests.
#pragma once
#include <kern/lock.hpp>
#include <kern/list.hpp>
#include <rdma/driver.hpp>
#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/wqe.hpp>
#include "hca.hpp"
#include "../mellanox_icm/qp_attributes.hpp"
#include "../mellanox_icm/qp_states.hpp"
#include "../mellanox_icm/work_queue.hpp"
#include "qp_geometry.hpp"
#include "user_queue.hpp"

namespace mlx4
{

class Srq;

class Qp
{
public:
	using Object = rdma::DriverObject<ib_qp, Qp>;
	static Qp &of(ib_qp *qp) { return Object::state(qp); }

	Qp(Hca &hca, ib_qp &verbs);
	~Qp();

	/* udata: of a program, in whose memory the queues then lie. */
	kern::Result<> start(ib_qp_init_attr &attr, ib_udata *udata);
	/*
	 * Removes the QP from the card. No event or completion of it follows, except those that
	 * remain in its CQs, whose number this returns. May sleep.
	 */
	u32 stop();
	kern::Result<> modify(const ib_qp_attr &attr, int mask);
	kern::Result<> query(ib_qp_attr &attr, int mask, ib_qp_init_attr &init);

	/* The verbs. Any context. */
	int post_send(const ib_send_wr *wr, const ib_send_wr **bad);
	int post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad);

	ib_qp &verbs() const { return verbs_; }
	/* The hardware's number, which for SMI and GSI is not the verbs' (MGMT-02). */
	u32 number() const { return number_; }
	QpKind kind() const { return kind_; }
	bool blocks_loopback() const
	{
		return create_flags_ & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	}

	// Used by the poller, with the lock of the CQ held.
	SendQueue sq;
	ReceiveQueue rq;
	Srq *srq = nullptr;

	// In the lists of its CQs.
	kern::ListNode send_cq_node, recv_cq_node;

private:
	int post_special(const ib_send_wr *wr, const ib_send_wr **bad);
	kern::Result<> make_queues(ib_qp_init_attr &attr);
	kern::Result<> take_user_queues(ib_qp_init_attr &attr, ib_udata &udata);
	QueuePlace place() const
	{
		return {hca_.uar_page(), buffer_.log_page_size(), buffer_.mtt_offset(),
			geometry_.has_rq ? doorbell_.bus_address() : 0};
	}
	kern::Result<> command(wire::Opcode opcode, ib_qp_state from, ib_qp_state to,
			       const ib_qp_attr &attr, int mask);
	void fill_static_context(u8 *context);
	void reset_queues();
	/* Makes the card flush all outstanding requests, and waits until it has. */
	void flush() KERN_REQUIRES(state_lock_);

	ib_qp &verbs_;
	kern::Mmio uar_;
	Hca &hca_;
	u32 number_ = 0;
	QpKind kind_ = QpKind::connected;
	bool names_srqs_ =
		false; // XRC initiator: each request says which SRQ its message goes through
	bool in_tables_ = false;

	kern::Mutex state_lock_;
	ib_qp_state state_ KERN_GUARDED_BY(state_lock_) = IB_QPS_RESET;
	SavedAttributes saved_;

	QpGeometry geometry_{};
	ib_qp_cap cap_{};
	u32 create_flags_ = 0;
	Number qpn_;
	QueueBuffer buffer_;
	DoorbellRecord doorbell_;
	// Instead of the two, of a program's; `sq` and `rq` are without a ring then.
	UserQueue user_;
	bool sq_no_prefetch_ = true;
	mellanox_icm::EventCapacity event_capacity_;
	IcmHold context_, auxiliary_, alternate_, reads_, protection_;
};

} // namespace mlx4
