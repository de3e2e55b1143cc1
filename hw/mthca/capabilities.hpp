// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The capabilities that the card reports, validated.
#pragma once
#include <kern/result.hpp>
#include <hw/mthca/commands.hpp>
#include "../mellanox_icm/port.hpp"

namespace mthca
{

namespace wire = ::hw::mthca;
using mellanox_icm::PortCapabilities;

/* QUERY_FW. Offsets are within BAR 0. */
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

/* Sizes of the context entries in ICM, bytes. */
struct EntrySizes {
	u32 qpc, eqpc, eec, eeec, cqc, srqc, eqc, mpt, mtt, uar_scratch;
};

/* QUERY_DEV_LIM: counts, not logarithms, unless the name contains log. */
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
	PortCapabilities port; // capabilities of each port
	u16 static_rates;      // bit n: code n is known
	u32 flags;             // wire::dev_lim_flag
	u64 max_icm_bytes;
	EntrySizes entry;

	bool has(u32 flag) const { return flags & flag; }
};

/* The card has no field for it: the length of a message has 31 bits. */
inline constexpr u32 log_max_message = 31;

/*
 * Parse the answers of the two queries; bar0_bytes: the size of the BAR that must contain the
 * addresses of registers. An answer that contradicts itself, or with which no driver could work, is
 * -EPROTO, with one log line that gives the reason. Context: any.
 */
kern::Result<Firmware> parse_firmware(const u8 *mailbox, u64 bar0_bytes);
kern::Result<Capabilities> parse_capabilities(const u8 *mailbox);

} // namespace mthca
