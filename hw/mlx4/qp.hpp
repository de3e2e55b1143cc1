// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements queue pairs of a ConnectX: creation, state transitions and posting of requests.
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/wqe.hpp>
#include "hca.hpp"
#include "../mellanox_icm/qp_control.hpp"
#include "qp_geometry.hpp"
#include "user_queue.hpp"

namespace mlx4
{

class Srq;

class Qp : public QpControl<Qp, wire::QpContext>
{
public:
	using Object = rdma::DriverObject<ib_qp, Qp>;
	static Qp &of(ib_qp *qp) { return Object::state(qp); }

	Qp(Hca &hca, ib_qp &verbs);
	~Qp();

	/*
	 * Creates the QP. udata: of a program, whose memory then contains the queues; nullptr for a
	 * kernel's QP.
	 */
	kern::Result<> start(ib_qp_init_attr &attr, ib_udata *udata);
	/*
	 * Does the same as QpControl::stop(). The completions of an XRC target remain in the CQs of
	 * the SRQs.
	 */
	u32 stop();
	kern::Result<> query(ib_qp_attr &attr, ib_qp_init_attr &init);

	/* These implement the verbs. Context: any. */
	int post_send(const ib_send_wr *wr, const ib_send_wr **bad);
	int post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad);

	bool blocks_loopback() const
	{
		return create_flags_ & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	}

	// poll() uses these with the CQ's lock held.
	SendQueue sq;
	ReceiveQueue rq;
	Srq *srq = nullptr;

	// Nodes in the lists of the CQs.
	kern::ListNode send_cq_node, recv_cq_node;

private:
	friend QpControl;
	using CompletionQueue = Cq;
	static constexpr size_t mailbox_size = wire::qp_mailbox_size;
	static constexpr u8 reset_modifier = 2;

	int post_special(const ib_send_wr *wr, const ib_send_wr **bad);
	kern::Result<> create_kernel_queues(ib_qp_init_attr &attr);
	kern::Result<> use_user_queues(ib_qp_init_attr &attr, ib_udata &udata);
	QueuePlace place() const
	{
		return {hca_.uar_page(), buffer_.log_page_size(), buffer_.mtt_offset(),
			geometry_.has_rq ? doorbell_.bus_address() : 0};
	}
	/* Called by QpControl. */
	void reset_queues();
	void fill_static_context(u8 *context);
	kern::Result<u32> put_transition(u8 *context, ib_qp_state to, const ib_qp_attr &attr,
					 int mask);
	void get_attributes(const u8 *context, ib_qp_attr &attr);

	ib_qp &verbs_;
	kern::Mmio uar_;
	Hca &hca_;
	u32 number_ = 0;
	QpKind kind_ = QpKind::connected;
	bool specifies_srqs_ = false; // XRC initiator: each request specifies the target's SRQ
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
	// Used for a program's QP instead of buffer_ and doorbell_; `sq` and `rq` then have no
	// ring.
	UserQueue user_;
	bool sq_no_prefetch_ = true;
	mellanox_icm::EventCapacity event_capacity_;
	IcmHold context_, auxiliary_, alternate_, reads_, protection_;
};

} // namespace mlx4
