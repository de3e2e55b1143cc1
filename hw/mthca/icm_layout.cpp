// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "icm_layout.hpp"
#include <kern/bits.hpp>
#include <kern/log.hpp>

namespace mthca
{

kern::Result<IcmLayout> lay_out_icm(const Capabilities &cap, const IcmRequest &request)
{
	const u32 log_qps = smaller(request.log_qps, cap.log_max_qps);
	const u32 log_srqs = smaller(request.log_srqs, cap.log_max_srqs);
	const u32 log_cqs = smaller(request.log_cqs, cap.log_max_cqs);
	const u32 log_mpts = smaller(request.log_mpts, cap.log_max_mpts);
	const u32 log_mcgs = smaller(request.log_mcgs, cap.log_max_mcgs);
	const u32 log_eqs = smaller(cap.log_max_eqs, 6);
	const u32 log_uars = kern::log2_ceil(cap.uar_bytes / wire::uar::page_size);
	const u32 log_mtts = smaller(request.log_mtts, cap.log_max_mtts);

	// The tables need space for the reserved objects, for the QPs of each special type and as
	// many other QPs, and for a user access region each for the kernel and one program.
	if (1u << log_qps < cap.reserved_qps + 8 || 1u << log_cqs < cap.reserved_cqs + 8 ||
	    1u << log_mpts < cap.reserved_mpts + 8 || 1u << log_srqs < cap.reserved_srqs + 8 ||
	    1u << log_mtts < cap.reserved_mtts + 8 || 1u << log_eqs < cap.reserved_eqs + 2 ||
	    1u << log_uars < cap.reserved_uars + 3 || log_mcgs < 4) {
		kern_error("the card's tables are too small for its own reserved objects\n");
		return kern::Error{-EPROTO};
	}

	IcmLayout layout{};
	layout.log_reads_per_qp = smaller(request.log_reads_per_qp, cap.log_max_responder_reads);
	layout.log_uarc_pages = request.log_uarc_pages;

	layout.set_size(IcmRegion::qpc, cap.entry.qpc, log_qps);
	layout.set_size(IcmRegion::eqpc, cap.entry.eqpc, log_qps);
	layout.set_size(IcmRegion::rdb, rdb_entry_bytes << layout.log_reads_per_qp, log_qps);
	layout.set_size(IcmRegion::eec, cap.entry.eec, 0);
	layout.set_size(IcmRegion::eeec, cap.entry.eeec, 0);
	layout.set_size(IcmRegion::srqc, cap.entry.srqc, log_srqs);
	layout.set_size(IcmRegion::cqc, cap.entry.cqc, log_cqs);
	layout.set_size(IcmRegion::eqc, cap.entry.eqc, log_eqs);
	layout.set_size(IcmRegion::mcg, 1u << request.log_mcg_bytes, log_mcgs);
	layout.set_size(IcmRegion::mpt, cap.entry.mpt, log_mpts);
	layout.set_size(IcmRegion::mtt, cap.entry.mtt, log_mtts);
	layout.set_size(IcmRegion::uar_scratch, cap.entry.uar_scratch, log_uars);
	// The size is in pages. Each region has as many pages of doorbell records.
	layout.set_size(IcmRegion::uarc, wire::uar::page_size, log_uars + layout.log_uarc_pages);

	layout.total_bytes = place_by_size<icm_regions>(layout.extent);
	KERN_TRY(layout.check_total(cap.max_icm_bytes));
	return layout;
}

} // namespace mthca
