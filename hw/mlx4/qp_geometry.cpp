// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_geometry.hpp"
#include <kern/bits.hpp>
#include <hw/mlx4/contexts.hpp>
#include <hw/mlx4/wqe.hpp>
#include <ib/packet.hpp>
#include "family.hpp"

namespace mlx4
{

namespace
{

/* Returns the number of bytes in front of the data in the largest descriptor of a QP type. */
u32 send_overhead(ib_qp_type type, u32 create_flags)
{
	using namespace ::hw::mlx4;
	switch (type) {
	case IB_QPT_UD:
		return sizeof(WqeControl) + sizeof(WqeDatagram) +
		       (create_flags & IB_QP_CREATE_IPOIB_UD_LSO
				? kern::align_up(4 + max_lso_header, wqe_unit)
				: 0);
	case IB_QPT_SMI:
	case IB_QPT_GSI: {
		const u32 headers =
			sizeof(ib::Lrh) + sizeof(ib::Grh) + sizeof(ib::Bth) + sizeof(ib::Deth);
		// The last unit is space for the ICRC.
		return sizeof(WqeControl) + inline_bytes(sizeof(WqeControl), headers) + wqe_unit;
	}
	default:
		// Masked compare-and-swap needs the most space; requests for memory registration
		// need less.
		return sizeof(WqeControl) + sizeof(WqeRemoteAddress) + sizeof(WqeMaskedAtomic);
	}
}

/* Determines which queues the QP has. */
QpGeometry start_plan(const ib_qp_init_attr &attr)
{
	QpGeometry plan{};
	plan.has_sq = attr.qp_type != IB_QPT_XRC_TGT;
	plan.has_rq = !attr.srq && attr.qp_type != IB_QPT_XRC_TGT && attr.qp_type != IB_QPT_XRC_INI;
	return plan;
}

kern::Result<> plan_receives(const Capabilities &cap, const ib_qp_cap &requested, QpGeometry &plan)
{
	if (requested.max_recv_wr > 1u << cap.log_max_qp_size ||
	    requested.max_recv_sge > cap.max_rq_sge)
		return kern::Error{-EINVAL};
	const u32 sges = requested.max_recv_sge ? requested.max_recv_sge : 1;
	plan.log_rq_stride = kern::log2_ceil(sges * sizeof(wire::WqeData));
	if (1u << plan.log_rq_stride > cap.max_rq_wqe_bytes)
		return kern::Error{-EINVAL};
	plan.log_rq_size = kern::log2_ceil(requested.max_recv_wr ? requested.max_recv_wr : 1);
	plan.max_recv_sge = (1u << plan.log_rq_stride) / sizeof(wire::WqeData);
	if (plan.max_recv_sge > cap.max_rq_sge)
		plan.max_recv_sge = cap.max_rq_sge;
	return {};
}

/* Places the queue with the larger stride first, or the send queue if both strides are equal. */
void lay_out(QpGeometry &plan)
{
	const u32 sq_bytes = plan.has_sq ? 1u << (plan.log_sq_size + plan.log_sq_stride) : 0;
	const u32 rq_bytes = plan.has_rq ? 1u << (plan.log_rq_size + plan.log_rq_stride) : 0;
	const bool rq_first = plan.has_rq && plan.has_sq && plan.log_rq_stride > plan.log_sq_stride;
	plan.sq_offset = rq_first ? rq_bytes : 0;
	plan.rq_offset = rq_first ? 0 : sq_bytes;
	plan.bytes = sq_bytes + rq_bytes;
}

} // namespace

kern::Result<QpGeometry> plan_queues(const Capabilities &cap, const ib_qp_init_attr &attr)
{
	QpGeometry plan = start_plan(attr);
	const u32 largest = 1u << cap.log_max_qp_size;

	if (plan.has_sq) {
		const ib_qp_cap &requested = attr.cap;
		if (requested.max_send_wr > largest || requested.max_send_sge > cap.max_sq_sge ||
		    requested.max_inline_data > cap.max_sq_wqe_bytes)
			return kern::Error{-EINVAL};
		const u32 overhead = send_overhead(attr.qp_type, attr.create_flags);
		const u32 scatter = requested.max_send_sge * sizeof(wire::WqeData);
		const u32 data = inline_bytes(overhead, requested.max_inline_data);
		const u32 needed = overhead + (scatter > data ? scatter : data);
		const u32 limit = cap.max_sq_wqe_bytes < wire::wqe_bytes_max ? cap.max_sq_wqe_bytes
									     : wire::wqe_bytes_max;
		if (needed > limit)
			return kern::Error{-EINVAL};
		plan.log_sq_stride = needed <= 64 ? 6 : kern::log2_ceil(needed);
		plan.log_sq_size =
			kern::log2_ceil(requested.max_send_wr ? requested.max_send_wr : 1);
		const u32 usable =
			(1u << plan.log_sq_stride) < limit ? 1u << plan.log_sq_stride : limit;
		plan.max_send_sge = (usable - overhead) / sizeof(wire::WqeData);
		if (plan.max_send_sge > cap.max_sq_sge)
			plan.max_send_sge = cap.max_sq_sge;
		plan.max_inline = requested.max_inline_data;
		while (inline_bytes(overhead, plan.max_inline + 4) <= usable - overhead)
			plan.max_inline += 4;
	}
	if (plan.has_rq)
		KERN_TRY(plan_receives(cap, attr.cap, plan));
	lay_out(plan);
	if (plan.bytes > QueueBuffer::max_bytes)
		return kern::Error{-EINVAL};
	return plan;
}

kern::Result<QpGeometry> plan_user_queues(const Capabilities &cap, const ib_qp_init_attr &attr,
					  const user_abi::CreateQp &command)
{
	QpGeometry plan = start_plan(attr);
	if (plan.has_sq) {
		// The context has three bits for log2 of the stride, minus 4. A queue size of 15
		// means that there is no queue.
		const u32 largest_stride = kern::log2_ceil(cap.max_sq_wqe_bytes);
		if (command.log_sq_size > cap.log_max_qp_size ||
		    command.log_sq_size >= wire::QpContext::no_send_queue ||
		    command.log_sq_stride < 6 || command.log_sq_stride > largest_stride ||
		    command.log_sq_stride > 4 + wire::QpContext::log_sq_stride.max())
			return kern::Error{-EINVAL};
		plan.log_sq_size = command.log_sq_size;
		plan.log_sq_stride = command.log_sq_stride;
		plan.max_send_sge = attr.cap.max_send_sge;
		plan.max_inline = attr.cap.max_inline_data;
	}
	if (command.reserved || command.inline_receive_bytes)
		return kern::Error{-EINVAL};
	if (plan.has_rq) {
		if (attr.cap.max_recv_wr == 0 || attr.cap.max_recv_sge == 0)
			return kern::Error{-EINVAL};
		KERN_TRY(plan_receives(cap, attr.cap, plan));
	} else if (attr.cap.max_recv_wr) {
		return kern::Error{-EINVAL};
	}
	lay_out(plan);
	return plan;
}

} // namespace mlx4
