// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses and validates the capabilities that the card reports.
#pragma once
#include <kern/result.hpp>
#include <hw/mlx4/commands.hpp>
#include "../mellanox_icm/port.hpp"

namespace mlx4
{

namespace wire = ::hw::mlx4;
using mellanox_icm::PortCapabilities;

/*
 * Result of QUERY_FW. Offsets are within the BAR (0 or 2) that the member of the same name
 * specifies.
 */
struct Firmware {
	u16 major, minor, subminor;
	u32 pages;
	u32 log_max_commands;
	u64 error_buffer_offset;
	u32 error_buffer_dwords;
	unsigned int error_buffer_bar;
	u64 clear_interrupt_offset;
	unsigned int clear_interrupt_bar;
};

/* Sizes of the context entries in ICM, in bytes. */
struct EntrySizes {
	u32 qpc, auxc, altc, rdmarc, cqc, srqc, eqc, cmpt, dmpt, mtt;
};

/* Result of QUERY_DEV_CAP. Values are counts, unless the name contains log. */
struct Capabilities {
	u32 log_max_qps, reserved_qps, log_max_qp_size;
	u32 log_max_srqs, reserved_srqs, log_max_srq_size;
	u32 log_max_cqs, reserved_cqs, log_max_cq_size;
	u32 log_max_eqs, reserved_eqs;
	u32 log_max_mpts, reserved_mpts;
	u32 log_max_mtts, reserved_mtts;
	u32 reserved_pds, log_max_pds;
	u32 reserved_xrcds, log_max_xrcds;
	u32 log_max_mcgs;
	u32 uar_bytes, reserved_uars;
	u32 max_sq_sge, max_sq_wqe_bytes, max_rq_sge, max_rq_wqe_bytes;
	u32 log_max_requester_reads, log_max_responder_reads;
	u32 log_max_message;
	u32 log_max_lso; // 0 if the card does not support large sends
	u32 local_ack_delay;
	u32 num_ports;
	u16 static_rates; // bit 5 + n: the card supports rate n (enum ib_rate)
	u64 flags;        // wire::dev_cap_flag
	u32 bmme_flags;   // wire::bmme_flag
	u32 reserved_lkey;
	u64 max_icm_bytes;
	EntrySizes entry;

	bool has(u64 flag) const { return flags & flag; }
	bool has_bmme(u32 mask) const { return (bmme_flags & mask) == mask; }
	/*
	 * Returns true if the card supports fast registration, which needs all three capabilities.
	 */
	bool fast_registration() const
	{
		return has_bmme(wire::bmme_flag::local_invalidate |
				wire::bmme_flag::remote_invalidate |
				wire::bmme_flag::fast_register);
	}
};

/*
 * Parse the results of the three queries. Errors: EPROTO, with one log line that gives the reason,
 * if a result is inconsistent or no driver could work with it. Context: any.
 */
kern::Result<Firmware> parse_firmware(const u8 *mailbox);
kern::Result<Capabilities> parse_capabilities(const u8 *mailbox);
kern::Result<PortCapabilities> parse_port_capabilities(const u8 *mailbox);

} // namespace mlx4
