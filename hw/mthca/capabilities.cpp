// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "capabilities.hpp"
#include <hw/mthca/wqe.hpp>
#include "../mellanox_icm/capability_checks.hpp"

namespace mthca
{

using mellanox_icm::entry_size_ok;
using mellanox_icm::report_invalid;

kern::Result<Firmware> parse_firmware(const u8 *mailbox, u64 bar0_bytes)
{
	using Fw = wire::QueryFw;
	// The field contains a bus address. Only its offset in the BAR is used, because the BAR is
	// aligned to its size.
	const auto offset = [&](wire::Field64 field) {
		return field.get(mailbox) & (bar0_bytes - 1);
	};
	const Firmware fw{
		.major = static_cast<u16>(Fw::version_major.get(mailbox)),
		.minor = static_cast<u16>(Fw::version_minor.get(mailbox)),
		.subminor = static_cast<u16>(Fw::version_subminor.get(mailbox)),
		.pages = Fw::fw_pages.get(mailbox),
		.log_max_commands = Fw::log_max_commands.get(mailbox),
		.error_buffer_offset = offset(Fw::error_buffer),
		.error_buffer_dwords = Fw::error_buffer_size.get(mailbox),
		.clear_interrupt_offset = offset(Fw::clear_interrupt),
		.eq_arm_offset = offset(Fw::eq_arm),
		.eq_ci_offset = offset(Fw::eq_ci_table),
	};
	const auto fits = [&](u64 at, u64 bytes) {
		return at % 4 == 0 && at <= bar0_bytes && bytes <= bar0_bytes - at;
	};
	if (fw.error_buffer_dwords > 1024 ||
	    !fits(fw.error_buffer_offset, u64{fw.error_buffer_dwords} * 4))
		return report_invalid("error buffer", fw.error_buffer_offset);
	if (fw.clear_interrupt_offset % 8 || !fits(fw.clear_interrupt_offset, 8))
		return report_invalid("clear-interrupt register", fw.clear_interrupt_offset);
	if (!fits(fw.eq_arm_offset, wire::eq_arm_size))
		return report_invalid("register that arms event queues", fw.eq_arm_offset);
	if (!fits(fw.eq_ci_offset, wire::eqs * wire::eq_ci_stride))
		return report_invalid("table of event queues' indexes", fw.eq_ci_offset);
	return fw;
}

kern::Result<Capabilities> parse_capabilities(const u8 *mailbox)
{
	using Lim = wire::QueryDevLim;
	const auto power = [mailbox](wire::Field field) { return 1u << field.get(mailbox); };
	const Capabilities cap{
		.log_max_qps = Lim::log_max_qps.get(mailbox),
		.reserved_qps = power(Lim::log_reserved_qps),
		.log_max_qp_size = Lim::log_max_qp_size.get(mailbox),
		.log_max_srqs = Lim::log_max_srqs.get(mailbox),
		.reserved_srqs = power(Lim::log_reserved_srqs),
		.log_max_srq_size = Lim::log_max_srq_size.get(mailbox),
		.log_max_cqs = Lim::log_max_cqs.get(mailbox),
		.reserved_cqs = power(Lim::log_reserved_cqs),
		.log_max_cq_size = Lim::log_max_cq_size.get(mailbox),
		.log_max_eqs = Lim::log_max_eqs.get(mailbox),
		.reserved_eqs = power(Lim::reserved_eqs),
		.log_max_mpts = Lim::log_max_mpts.get(mailbox),
		.reserved_mpts = power(Lim::log_reserved_mrws),
		.log_max_mtts = Lim::log_max_mtts.get(mailbox),
		.reserved_mtts = power(Lim::log_reserved_mtts),
		.reserved_pds = Lim::reserved_pds.get(mailbox),
		.log_max_pds = Lim::log_max_pds.get(mailbox),
		.log_max_mcgs = Lim::log_max_mcg.get(mailbox),
		.uar_bytes = Lim::log_uar_size.get(mailbox) <= 11
				     ? 1u << (20 + Lim::log_uar_size.get(mailbox))
				     : 0,
		.reserved_uars = Lim::reserved_uars.get(mailbox),
		.max_sq_sge = Lim::max_sq_sge.get(mailbox),
		.max_sq_wqe_bytes = Lim::max_sq_wqe_size.get(mailbox),
		.max_rq_sge = Lim::max_rq_sge.get(mailbox),
		.max_rq_wqe_bytes = Lim::max_rq_wqe_size.get(mailbox),
		.log_max_requester_reads = Lim::log_max_requester_reads.get(mailbox),
		.log_max_responder_reads = Lim::log_max_responder_reads.get(mailbox),
		.local_ack_delay = Lim::local_ack_delay.get(mailbox),
		.num_ports = Lim::num_ports.get(mailbox),
		.port_width = Lim::port_width.get(mailbox),
		.port =
			{
				.max_mtu = Lim::max_mtu.get(mailbox),
				.gids = power(Lim::log_max_gids),
				.pkeys = power(Lim::log_max_pkeys),
				.max_vls = Lim::max_vls.get(mailbox),
			},
		.static_rates = static_cast<u16>(Lim::static_rates.get(mailbox)),
		.flags = Lim::flags.get(mailbox),
		.max_icm_bytes = Lim::max_icm_size.get(mailbox),
		.entry =
			{
				.qpc = Lim::qpc_entry_size.get(mailbox),
				.eqpc = Lim::eqpc_entry_size.get(mailbox),
				.eec = Lim::eec_entry_size.get(mailbox),
				.eeec = Lim::eeec_entry_size.get(mailbox),
				.cqc = Lim::cqc_entry_size.get(mailbox),
				.srqc = Lim::srqc_entry_size.get(mailbox),
				.eqc = Lim::eqc_entry_size.get(mailbox),
				.mpt = Lim::mpt_entry_size.get(mailbox),
				.mtt = Lim::mtt_entry_size.get(mailbox),
				.uar_scratch = Lim::uar_scratch_entry_size.get(mailbox),
			},
	};

	KERN_TRY((mellanox_icm::check_common<Lim>(cap, mailbox)));
	if (cap.port.max_mtu < IB_MTU_256 || cap.port.max_mtu > IB_MTU_2048)
		return report_invalid("the ports' largest MTU", cap.port.max_mtu);
	// In an address vector, six bits index the GIDs of both ports. P_Key indices have seven
	// bits.
	if (cap.port.gids > wire::AddressVector::gids_per_port || cap.port.pkeys > 128)
		return report_invalid("the ports' table sizes",
				      cap.port.gids > wire::AddressVector::gids_per_port
					      ? cap.port.gids
					      : cap.port.pkeys);
	if (!cap.has(wire::dev_lim_flag::rc) || !cap.has(wire::dev_lim_flag::ud))
		return report_invalid("capability flags", cap.flags);
	if (cap.log_max_cq_size < 4 || cap.log_max_cq_size > 24)
		return report_invalid("log2 of the largest CQ", cap.log_max_cq_size);
	if (cap.max_sq_wqe_bytes < 128 || !cap.max_sq_sge)
		return report_invalid("largest send descriptor", cap.max_sq_wqe_bytes);
	if (cap.max_rq_wqe_bytes < 64 || !cap.max_rq_sge)
		return report_invalid("largest receive descriptor", cap.max_rq_wqe_bytes);
	if (!entry_size_ok(cap.entry.qpc, 128) || !entry_size_ok(cap.entry.eqpc, 16) ||
	    !entry_size_ok(cap.entry.eec, 16) || !entry_size_ok(cap.entry.eeec, 16) ||
	    !entry_size_ok(cap.entry.cqc, 32) || !entry_size_ok(cap.entry.srqc, 32) ||
	    !entry_size_ok(cap.entry.eqc, 32) || !entry_size_ok(cap.entry.mpt, 64) ||
	    !entry_size_ok(cap.entry.uar_scratch, 16))
		return report_invalid("a context entry size", cap.entry.qpc);
	return cap;
}

} // namespace mthca
