// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Computes the sizes of the card's context tables, and their addresses in the card's own address
// space (ICM).
#pragma once
#include "../mellanox_icm/icm_placing.hpp"
#include "capabilities.hpp"
#include "family.hpp"

namespace mthca
{

enum class IcmRegion : u8 {
	qpc,
	eqpc,
	rdb,
	eec,
	eeec,
	srqc,
	cqc,
	eqc,
	mcg,
	mpt,
	mtt,
	uar_scratch,
	uarc,
};
inline constexpr unsigned int icm_regions = 13;

/* The numbers of objects that the driver requests. Each is limited to what the card supports. */
struct IcmRequest {
	u32 log_qps = 13;
	u32 log_srqs = 12;
	u32 log_cqs = 13;
	u32 log_mpts = 17;
	u32 log_mtts = 20;
	u32 log_mcgs = 13;
	u32 log_mcg_bytes = 8;
	u32 log_reads_per_qp = 4;
	/* Number of pages of doorbell records in a user access region. */
	u32 log_uarc_pages = 6;
};

/* Size of a responder's entry for an RDMA read or an atomic. It is fixed; no query returns it. */
inline constexpr u32 rdb_entry_bytes = 32;

struct IcmLayout : IcmExtents<IcmRegion, icm_regions> {
	u32 log_reads_per_qp;
	u32 log_uarc_pages;
};

/*
 * Assigns addresses to the regions, from 0 on in order of decreasing size, so that each is aligned
 * to its own size. Errors: EPROTO if the card's tables are too small for its reserved objects,
 * ENOSPC if its ICM is too small. Context: any.
 */
kern::Result<IcmLayout> lay_out_icm(const Capabilities &capabilities, const IcmRequest &request);

} // namespace mthca
