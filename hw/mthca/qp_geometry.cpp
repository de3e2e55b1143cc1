// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_geometry.hpp"
#include <ib/packet.hpp>
#include <kern/bits.hpp>

namespace mthca
{

namespace
{

/* Strides are powers of two of at least this size. */
constexpr u32 min_log_stride = 6;

/* Returns the number of bytes in front of the data in the largest descriptor of a QP type. */
u32 send_overhead(ib_qp_type type)
{
	using namespace wire;
	switch (type) {
	case IB_QPT_UD:
		return sizeof(WqeNext) + sizeof(WqeDatagram);
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		// The headers of the packet, the padding, and space for the ICRC at the end.
		return sizeof(WqeNext) +
		       inline_bytes(sizeof(ib::Lrh) + sizeof(ib::Grh) + sizeof(ib::Bth) +
				    sizeof(ib::Deth) + 4) +
		       inline_bytes(3 + 4);
	default:
		return sizeof(WqeNext) + sizeof(WqeRemoteAddress) + sizeof(WqeAtomic);
	}
}

/*
 * Returns the number of entries in the library's queue: a power of two, or 0 if there is no queue.
 */
u32 user_entries(u32 requests)
{
	return requests ? 1u << kern::log2_ceil(requests) : 0;
}

u32 user_stride(u32 bytes)
{
	return kern::log2_ceil(bytes) < min_log_stride ? min_log_stride : kern::log2_ceil(bytes);
}

} // namespace

kern::Result<QpGeometry> plan_user_queues(const Capabilities &cap, const ib_qp_init_attr &attr)
{
	using namespace wire;
	QpGeometry plan{};
	const u32 largest = 1u << cap.log_max_qp_size;
	const ib_qp_cap &requested = attr.cap;
	if (requested.max_send_wr > largest || requested.max_recv_wr > largest ||
	    requested.max_send_sge > cap.max_sq_sge || requested.max_recv_sge > cap.max_rq_sge ||
	    requested.max_inline_data > inline_length_mask)
		return kern::Error{-EINVAL};
	// The size of inline data in data segments, and space for a window bind request, which the
	// library reserves for all cards.
	constexpr u32 bind_bytes = 32;
	const u32 scatter = requested.max_send_sge * sizeof(WqeData);
	const u32 inlined = kern::align_up(
		static_cast<u32>(sizeof(WqeInline)) + requested.max_inline_data, sizeof(WqeData));
	u32 bytes = scatter > inlined ? scatter : inlined;
	u32 least = bind_bytes;
	switch (attr.qp_type) {
	case IB_QPT_UD:
		bytes += sizeof(WqeDatagram);
		break;
	case IB_QPT_UC:
		bytes += sizeof(WqeRemoteAddress);
		break;
	case IB_QPT_RC:
		bytes += sizeof(WqeRemoteAddress);
		least = sizeof(WqeRemoteAddress) + sizeof(WqeAtomic) + sizeof(WqeData);
		break;
	default:
		return kern::Error{-EINVAL};
	}
	bytes = (bytes > least ? bytes : least) + sizeof(WqeNext);
	const u32 limit =
		cap.max_sq_wqe_bytes < wqe_bytes_max ? cap.max_sq_wqe_bytes : wqe_bytes_max;
	if (bytes > limit)
		return kern::Error{-EINVAL};
	plan.log_sq_stride = user_stride(bytes);
	plan.log_rq_stride = user_stride(
		static_cast<u32>(sizeof(WqeNext) + requested.max_recv_sge * sizeof(WqeData)));
	const u32 sends = user_entries(requested.max_send_wr),
		  receives = user_entries(requested.max_recv_wr);
	plan.log_sq_size = kern::log2_ceil(sends ? sends : 1);
	plan.log_rq_size = kern::log2_ceil(receives ? receives : 1);
	plan.has_rq = !attr.srq;
	plan.sq_offset = static_cast<u32>(
		kern::align_up(receives << plan.log_rq_stride, 1u << plan.log_sq_stride));
	plan.bytes = plan.sq_offset + (sends << plan.log_sq_stride);
	plan.max_send_sge = requested.max_send_sge;
	plan.max_recv_sge = requested.max_recv_sge;
	plan.max_inline = requested.max_inline_data;
	return plan;
}

kern::Result<QpGeometry> plan_queues(const Capabilities &cap, const ib_qp_init_attr &attr)
{
	QpGeometry plan{};
	const u32 largest = 1u << cap.log_max_qp_size;
	const ib_qp_cap &requested = attr.cap;
	if (requested.max_send_wr > largest || requested.max_send_sge > cap.max_sq_sge ||
	    requested.max_inline_data > wire::inline_length_mask)
		return kern::Error{-EINVAL};
	const u32 limit = cap.max_sq_wqe_bytes < wire::wqe_bytes_max ? cap.max_sq_wqe_bytes
								     : wire::wqe_bytes_max;
	const u32 overhead = send_overhead(attr.qp_type);
	const u32 scatter = requested.max_send_sge * sizeof(wire::WqeData);
	const u32 data = inline_bytes(requested.max_inline_data);
	const u32 needed = overhead + (scatter > data ? scatter : data);
	if (needed > limit)
		return kern::Error{-EINVAL};
	const auto log_of = [](u32 value) { return kern::log2_ceil(value ? value : 1); };
	plan.log_sq_stride = log_of(needed) < min_log_stride ? min_log_stride : log_of(needed);
	plan.log_sq_size = log_of(requested.max_send_wr);
	const u32 usable = (1u << plan.log_sq_stride) < limit ? 1u << plan.log_sq_stride : limit;
	plan.max_send_sge = (usable - overhead) / sizeof(wire::WqeData);
	if (plan.max_send_sge > cap.max_sq_sge)
		plan.max_send_sge = cap.max_sq_sge;
	plan.max_inline = (usable - overhead) & ~15u;
	plan.max_inline = plan.max_inline ? plan.max_inline - sizeof(wire::WqeInline) : 0;

	plan.has_rq = !attr.srq;
	if (plan.has_rq) {
		if (requested.max_recv_wr > largest || requested.max_recv_sge > cap.max_rq_sge)
			return kern::Error{-EINVAL};
		const u32 sges = requested.max_recv_sge ? requested.max_recv_sge : 1;
		const u32 bytes = sizeof(wire::WqeNext) + sges * sizeof(wire::WqeData);
		const u32 max_bytes = cap.max_rq_wqe_bytes < wire::wqe_bytes_max
					      ? cap.max_rq_wqe_bytes
					      : wire::wqe_bytes_max;
		if (bytes > max_bytes)
			return kern::Error{-EINVAL};
		plan.log_rq_stride =
			log_of(bytes) < min_log_stride ? min_log_stride : log_of(bytes);
		plan.log_rq_size = log_of(requested.max_recv_wr);
		const u32 stride = (1u << plan.log_rq_stride) < max_bytes ? 1u << plan.log_rq_stride
									  : max_bytes;
		plan.max_recv_sge = (stride - sizeof(wire::WqeNext)) / sizeof(wire::WqeData);
		if (plan.max_recv_sge > cap.max_rq_sge)
			plan.max_recv_sge = cap.max_rq_sge;
	}
	const u32 rq_bytes = plan.has_rq ? 1u << (plan.log_rq_size + plan.log_rq_stride) : 0;
	plan.sq_offset = static_cast<u32>(kern::align_up(rq_bytes, 1u << plan.log_sq_stride));
	const u64 bytes = u64{plan.sq_offset} + (u64{1} << (plan.log_sq_size + plan.log_sq_stride));
	if (bytes > max_queue_bytes)
		return kern::Error{-EINVAL};
	plan.bytes = static_cast<u32>(bytes);
	return plan;
}

} // namespace mthca
