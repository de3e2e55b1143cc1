// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_geometry.hpp"
#include <kern/bits.hpp>
#include <hw/connectx/wqe.hpp>
#include <ib/packet.hpp>
#include "mtt.hpp"

namespace connectx {

namespace {

/* Bytes before the data in the largest descriptor of each type. */
u32 send_overhead(ib_qp_type type, u32 create_flags)
{
	using namespace ::hw::connectx;
	switch (type) {
	case IB_QPT_UD:
		return sizeof(WqeControl) + sizeof(WqeDatagram) +
		       (create_flags & IB_QP_CREATE_IPOIB_UD_LSO ?
				kern::align_up(4 + max_lso_header, wqe_unit) :
				0);
	case IB_QPT_SMI:
	case IB_QPT_GSI: {
		const u32 headers = sizeof(ib::Lrh) + sizeof(ib::Grh) + sizeof(ib::Bth) + sizeof(ib::Deth);
		// And the place of the ICRC at the end.
		return sizeof(WqeControl) + inline_bytes(sizeof(WqeControl), headers) + wqe_unit;
	}
	default:
		// Masked compare and swap; what registers memory is smaller.
		return sizeof(WqeControl) + sizeof(WqeRemoteAddress) + sizeof(WqeMaskedAtomic);
	}
}

} // namespace

kern::Result<QpGeometry> plan_queues(const Capabilities &cap, const ib_qp_init_attr &attr)
{
	QpGeometry plan{};
	const u32 largest = 1u << cap.log_max_qp_size;
	plan.has_sq = attr.qp_type != IB_QPT_XRC_TGT;
	plan.has_rq = !attr.srq && attr.qp_type != IB_QPT_XRC_TGT && attr.qp_type != IB_QPT_XRC_INI;

	if (plan.has_sq) {
		const ib_qp_cap &want = attr.cap;
		if (want.max_send_wr > largest || want.max_send_sge > cap.max_sq_sge ||
		    want.max_inline_data > cap.max_sq_wqe_bytes)
			return kern::Error{-EINVAL};
		const u32 overhead = send_overhead(attr.qp_type, attr.create_flags);
		const u32 scatter = want.max_send_sge * sizeof(wire::WqeData);
		const u32 data = inline_bytes(overhead, want.max_inline_data);
		const u32 needed = overhead + (scatter > data ? scatter : data);
		const u32 limit = cap.max_sq_wqe_bytes < wire::wqe_bytes_max ? cap.max_sq_wqe_bytes :
									       wire::wqe_bytes_max;
		if (needed > limit)
			return kern::Error{-EINVAL};
		plan.log_sq_stride = needed <= 64 ? 6 : kern::log2_ceil(needed);
		plan.log_sq_size = kern::log2_ceil(want.max_send_wr ? want.max_send_wr : 1);
		const u32 usable = (1u << plan.log_sq_stride) < limit ? 1u << plan.log_sq_stride : limit;
		plan.max_send_sge = (usable - overhead) / sizeof(wire::WqeData);
		if (plan.max_send_sge > cap.max_sq_sge)
			plan.max_send_sge = cap.max_sq_sge;
		plan.max_inline = want.max_inline_data;
		while (inline_bytes(overhead, plan.max_inline + 4) <= usable - overhead)
			plan.max_inline += 4;
	}
	if (plan.has_rq) {
		if (attr.cap.max_recv_wr > largest || attr.cap.max_recv_sge > cap.max_rq_sge)
			return kern::Error{-EINVAL};
		const u32 sges = attr.cap.max_recv_sge ? attr.cap.max_recv_sge : 1;
		plan.log_rq_stride = kern::log2_ceil(sges * sizeof(wire::WqeData));
		if (1u << plan.log_rq_stride > cap.max_rq_wqe_bytes)
			return kern::Error{-EINVAL};
		plan.log_rq_size = kern::log2_ceil(attr.cap.max_recv_wr ? attr.cap.max_recv_wr : 1);
		plan.max_recv_sge = (1u << plan.log_rq_stride) / sizeof(wire::WqeData);
		if (plan.max_recv_sge > cap.max_rq_sge)
			plan.max_recv_sge = cap.max_rq_sge;
	}

	// The queue with the larger stride comes first, the send queue if they are equal.
	const u32 sq_bytes = plan.has_sq ? 1u << (plan.log_sq_size + plan.log_sq_stride) : 0;
	const u32 rq_bytes = plan.has_rq ? 1u << (plan.log_rq_size + plan.log_rq_stride) : 0;
	const bool rq_first = plan.has_rq && plan.has_sq && plan.log_rq_stride > plan.log_sq_stride;
	plan.sq_offset = rq_first ? rq_bytes : 0;
	plan.rq_offset = rq_first ? 0 : sq_bytes;
	plan.bytes = sq_bytes + rq_bytes;
	if (plan.bytes > QueueBuffer::max_bytes)
		return kern::Error{-EINVAL};
	return plan;
}

} // namespace connectx
