// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "icm_layout.hpp"
#include <kern/bits.hpp>
#include <kern/log.hpp>

namespace mlx4
{

namespace
{

constexpr unsigned int log_cmpt_stride = 24;

} // namespace

kern::Result<IcmLayout> lay_out_icm(const Capabilities &cap, const IcmRequest &request)
{
	const u32 log_qps = smaller(request.log_qps, cap.log_max_qps);
	const u32 log_srqs = smaller(request.log_srqs, cap.log_max_srqs);
	const u32 log_cqs = smaller(request.log_cqs, cap.log_max_cqs);
	const u32 log_mpts = smaller(request.log_mpts, cap.log_max_mpts);
	const u32 log_mtts = smaller(request.log_mtts, cap.log_max_mtts);
	const u32 log_mcgs = smaller(request.log_mcgs, cap.log_max_mcgs);
	const u32 log_eqs = smaller(cap.log_max_eqs, 7);

	// The tables need space for the reserved objects, for the QPs of each special type, and for
	// as many other QPs.
	if (1u << log_qps < (cap.reserved_qps + 16) || 1u << log_cqs < cap.reserved_cqs + 8 ||
	    1u << log_mpts < cap.reserved_mpts + 8 || 1u << log_mtts < cap.reserved_mtts + 64 ||
	    1u << log_eqs < cap.reserved_eqs + 2 || log_mcgs < 4) {
		kern_error("the card's tables are too small for its own reserved objects\n");
		return kern::Error{-EPROTO};
	}

	IcmLayout layout{};
	layout.log_reads_per_qp = smaller(request.log_reads_per_qp, cap.log_max_responder_reads);
	layout.log_mcg_hash = log_mcgs - 1;

	layout.set_size(IcmRegion::qpc, cap.entry.qpc, log_qps);
	layout.set_size(IcmRegion::auxc, cap.entry.auxc, log_qps);
	layout.set_size(IcmRegion::altc, cap.entry.altc, log_qps);
	layout.set_size(IcmRegion::rdmarc, cap.entry.rdmarc << layout.log_reads_per_qp, log_qps);
	layout.set_size(IcmRegion::srqc, cap.entry.srqc, log_srqs);
	layout.set_size(IcmRegion::cqc, cap.entry.cqc, log_cqs);
	layout.set_size(IcmRegion::eqc, cap.entry.eqc, log_eqs);
	layout.set_size(IcmRegion::mcg, 1u << request.log_mcg_bytes, log_mcgs);
	layout.set_size(IcmRegion::dmpt, cap.entry.dmpt, log_mpts);
	layout.set_size(IcmRegion::mtt, cap.entry.mtt, log_mtts);
	// The stride of the four cMPT tables is fixed, so place them as one region.
	layout.set_size(IcmRegion::cmpt_qp, cap.entry.cmpt, log_cmpt_stride + 2);

	constexpr unsigned int independent = static_cast<int>(IcmRegion::cmpt_qp) + 1;
	layout.total_bytes = place_by_size<independent>(layout.extent);

	const u64 cmpt = layout[IcmRegion::cmpt_qp].base;
	const auto place_cmpt = [&](IcmRegion region, u64 type, u32 log_entries) {
		layout.extent[static_cast<int>(region)] = {cmpt + (type << log_cmpt_stride) *
									   cap.entry.cmpt,
							   cap.entry.cmpt, log_entries};
	};
	place_cmpt(IcmRegion::cmpt_qp, 0, log_qps);
	place_cmpt(IcmRegion::cmpt_srq, 1, log_srqs);
	place_cmpt(IcmRegion::cmpt_cq, 2, log_cqs);
	place_cmpt(IcmRegion::cmpt_eq, 3, log_eqs);

	KERN_TRY(layout.check_total(cap.max_icm_bytes));
	return layout;
}

} // namespace mlx4
