// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses and validates the capabilities that the card reports.
#pragma once
#include <kern/result.hpp>
#include <hw/mthca/commands.hpp>
#include "../mellanox_icm/port.hpp"

namespace mthca
{

namespace wire = ::hw::mthca;
using mellanox_icm::PortCapabilities;

/* Result of QUERY_FW. Offsets are relative to the start of BAR 0. */
struct Firmware {
	u16 major, minor, subminor;
	u32 pages;
	u32 log_max_commands;
	u64 error_buffer_offset;
	u32 error_buffer_dwords;
	u64 clear_interrupt_offset;
	u64 eq_arm_offset;
	u64 eq_ci_offset;
};

/* Sizes of the context entries in ICM, in bytes. */
struct EntrySizes {
	u32 qpc, eqpc, eec, eeec, cqc, srqc, eqc, mpt, mtt, uar_scratch;
};

/* Result of QUERY_DEV_LIM. Values are counts, unless the name contains log. */
struct Capabilities {
	u32 log_max_qps, reserved_qps, log_max_qp_size;
	u32 log_max_srqs, reserved_srqs, log_max_srq_size;
	u32 log_max_cqs, reserved_cqs, log_max_cq_size;
	u32 log_max_eqs, reserved_eqs;
	u32 log_max_mpts, reserved_mpts;
	u32 log_max_mtts, reserved_mtts;
	u32 reserved_pds, log_max_pds;
	u32 log_max_mcgs;
	u32 uar_bytes, reserved_uars;
	u32 max_sq_sge, max_sq_wqe_bytes, max_rq_sge, max_rq_wqe_bytes;
	u32 log_max_requester_reads, log_max_responder_reads;
	u32 local_ack_delay;
	u32 num_ports;
	u32 port_width;
	PortCapabilities port; // the same for each port
	u16 static_rates;      // bit n: the card supports code n
	u32 flags;             // wire::dev_lim_flag
	u64 max_icm_bytes;
	EntrySizes entry;

	bool has(u32 flag) const { return flags & flag; }
};

/* The card reports no limit: the length of a message has 31 bits. */
inline constexpr u32 log_max_message = 31;

/*
 * Parse the results of the two queries. bar0_bytes: the size of the BAR that must contain the
 * registers. Errors: EPROTO, with one log line that gives the reason, if a result is inconsistent
 * or no driver could work with it. Context: any.
 */
kern::Result<Firmware> parse_firmware(const u8 *mailbox, u64 bar0_bytes);
kern::Result<Capabilities> parse_capabilities(const u8 *mailbox);

} // namespace mthca
