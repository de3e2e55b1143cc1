// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the sizes of the card's context tables, and their addresses in the card's own address
// space (ICM).
#pragma once
#include "../mellanox_icm/icm_placing.hpp"
#include "capabilities.hpp"
#include "family.hpp"

namespace mlx4
{

enum class IcmRegion : u8 {
	qpc,
	auxc,
	altc,
	rdmarc,
	srqc,
	cqc,
	eqc,
	mcg,
	dmpt,
	mtt,
	cmpt_qp,
	cmpt_srq,
	cmpt_cq,
	cmpt_eq,
};
inline constexpr unsigned int icm_regions = 14;

/* The numbers of objects that the driver requests. Each is limited to what the card supports. */
struct IcmRequest {
	u32 log_qps = 16;
	u32 log_srqs = 16;
	u32 log_cqs = 16;
	u32 log_mpts = 19;
	u32 log_mtts = 20;
	u32 log_mcgs = 13;
	u32 log_mcg_bytes = 9;
	u32 log_reads_per_qp = 4;
};

struct IcmLayout : IcmExtents<IcmRegion, icm_regions> {
	u32 log_reads_per_qp;
	u32 log_mcg_hash;
};

/*
 * Assigns addresses to the regions, from 0 on in order of decreasing size, so that each is aligned
 * to its own size. The four tables of internal protection entries (cMPT) have the distance of 2^24
 * entries that the card requires. Errors: EPROTO if the card's tables are too small for its
 * reserved objects, ENOSPC if its ICM is too small. Context: any.
 */
kern::Result<IcmLayout> lay_out_icm(const Capabilities &capabilities, const IcmRequest &request);

} // namespace mlx4
