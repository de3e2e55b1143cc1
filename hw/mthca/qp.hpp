// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements queue pairs of an InfiniHost: creation, state transitions and posting of requests.
#pragma once
#include <kern/list.hpp>
#include <kern/lock.hpp>
#include <rdma/driver.hpp>
#include <hw/mthca/contexts.hpp>
#include <hw/mthca/wqe.hpp>
#include "../mellanox_icm/qp_control.hpp"
#include "hca.hpp"
#include "qp_geometry.hpp"
#include "user_context.hpp"

namespace mthca
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
	/* Replaces start() in a test without a card, which has set the ring in `sq`. */
	void start_without_card(u32 number, QpKind kind, u32 sq_base, u32 *sq_record);

	/* These implement the verbs. Context: any. */
	int post_send(const ib_send_wr *wr, const ib_send_wr **bad);
	int post_receive(const ib_recv_wr *wr, const ib_recv_wr **bad);

	/*
	 * Returns the lower half of the send ring's address. Completions contain addresses relative
	 * to it.
	 */
	u32 sq_base() const { return sq_base_; }

	// poll() uses these with the CQ's lock held.
	SendQueue sq;
	ReceiveQueue rq;
	Srq *srq = nullptr;

	// Nodes in the lists of the CQs.
	kern::ListNode send_cq_node, recv_cq_node;

	/* Writes the part of the context that only RESET -> INIT sets. */
	void fill_static_context(u8 *context);

private:
	friend QpControl;
	using CompletionQueue = Cq;
	static constexpr size_t mailbox_size = wire::qp_mailbox_size;
	static constexpr u8 reset_modifier = 2 | wire::to_rst_no_output;

	int post_special(const ib_send_wr *wr, const ib_send_wr **bad);
	/*
	 * Writes the descriptor of a complete packet. Returns its size in units. Errors: EINVAL,
	 * those of SpecialPacket.
	 */
	kern::Result<u32> put_special(const ib_send_wr &wr, u8 *wqe) KERN_REQUIRES(sq.lock);
	/*
	 * Rings the doorbell for the requests from `first` to `head`. link: describes the first
	 * request.
	 */
	void ring(const wire::WqeNext &link, u32 first, u32 head) KERN_REQUIRES(sq.lock);
	u8 *send_slot(u32 index) const { return sq.entries + ((index & sq.mask) << sq.log_stride); }
	kern::Result<> create_kernel_queues(ib_qp_init_attr &attr);
	kern::Result<> use_user_queues(ib_qp_init_attr &attr, ib_udata &udata);
	/* Allocates the doorbell records. The number must have been allocated. */
	kern::Result<> make_records();
	QueuePlace place() const;
	/* Called by QpControl. */
	void reset_queues();
	kern::Result<u32> put_transition(u8 *context, ib_qp_state to, const ib_qp_attr &attr,
					 int mask);
	void get_attributes(const u8 *context, ib_qp_attr &attr) const;

	ib_qp &verbs_;
	kern::Mmio uar_;
	Hca &hca_;
	u32 number_ = 0;
	u32 sq_base_ = 0;
	u32 *sq_record_ = nullptr;
	// The last posted descriptor, in which the link to the next one is written.
	wire::WqeNext *last_sent_ KERN_GUARDED_BY(sq.lock) = nullptr;
	QpKind kind_ = QpKind::connected;
	bool in_tables_ = false;

	kern::Mutex state_lock_;
	ib_qp_state state_ KERN_GUARDED_BY(state_lock_) = IB_QPS_RESET;
	SavedAttributes saved_;

	QpGeometry geometry_{};
	ib_qp_cap cap_{};
	Number qpn_;
	kern::DmaBuffer buffer_;
	Record sq_held_, rq_held_;
	// Used for a program's QP instead of kernel memory and records.
	UserRegion user_region_;
	UserRecord user_sq_, user_rq_;
	QueuePlace user_place_{};
	mellanox_icm::EventCapacity event_capacity_;
	IcmHold context_, extended_, reads_;
};

} // namespace mthca
