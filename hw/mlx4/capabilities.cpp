// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "capabilities.hpp"
#include "../mellanox_icm/capability_checks.hpp"

namespace mlx4
{

using mellanox_icm::entry_size_ok;
using mellanox_icm::report_invalid;

namespace
{

constexpr u32 larger(u32 a, u32 b)
{
	return a > b ? a : b;
}

} // namespace

kern::Result<Firmware> parse_firmware(const u8 *mailbox)
{
	using Fw = wire::QueryFw;
	const u32 revision = Fw::command_revision.get(mailbox);
	if (revision != wire::command_interface_revision)
		return report_invalid("command interface revision", revision);
	const Firmware fw{
		.major = static_cast<u16>(Fw::version_major.get(mailbox)),
		.minor = static_cast<u16>(Fw::version_minor.get(mailbox)),
		.subminor = static_cast<u16>(Fw::version_subminor.get(mailbox)),
		.pages = Fw::fw_pages.get(mailbox),
		.log_max_commands = Fw::log_max_commands.get(mailbox),
		.error_buffer_offset = Fw::error_buffer_offset.get(mailbox),
		.error_buffer_dwords = Fw::error_buffer_size.get(mailbox),
		.error_buffer_bar = Fw::error_buffer_bar.get(mailbox) * 2,
		.clear_interrupt_offset = Fw::clear_interrupt_offset.get(mailbox),
		.clear_interrupt_bar = Fw::clear_interrupt_bar.get(mailbox) * 2,
	};
	if (fw.error_buffer_dwords > 1024)
		return report_invalid("error buffer size", fw.error_buffer_dwords);
	return fw;
}

kern::Result<Capabilities> parse_capabilities(const u8 *mailbox)
{
	using Cap = wire::QueryDevCap;
	const auto power = [mailbox](wire::Field field) { return 1u << field.get(mailbox); };
	const Capabilities cap{
		.log_max_qps = Cap::log_max_qps.get(mailbox),
		.reserved_qps = power(Cap::log_reserved_qps),
		.log_max_qp_size = Cap::log_max_qp_size.get(mailbox),
		.log_max_srqs = Cap::log_max_srqs.get(mailbox),
		.reserved_srqs = power(Cap::log_reserved_srqs),
		.log_max_srq_size = Cap::log_max_srq_size.get(mailbox),
		.log_max_cqs = Cap::log_max_cqs.get(mailbox),
		.reserved_cqs = power(Cap::log_reserved_cqs),
		.log_max_cq_size = Cap::log_max_cq_size.get(mailbox),
		.log_max_eqs = Cap::log_max_eqs.get(mailbox),
		// The event queues whose doorbells are in the reserved UARs, four per page, cannot
		// be used either.
		.reserved_eqs =
			larger(power(Cap::log_reserved_eqs), Cap::reserved_uars.get(mailbox) * 4),
		.log_max_mpts = Cap::log_max_mpts.get(mailbox),
		.reserved_mpts = power(Cap::log_reserved_mrws),
		.log_max_mtts = Cap::log_max_mtts.get(mailbox),
		.reserved_mtts = power(Cap::log_reserved_mtts),
		.reserved_pds = Cap::reserved_pds.get(mailbox),
		.log_max_pds = Cap::log_max_pds.get(mailbox),
		.reserved_xrcds = Cap::reserved_xrcds.get(mailbox),
		.log_max_xrcds = Cap::log_max_xrcds.get(mailbox),
		.log_max_mcgs = Cap::log_max_mcg.get(mailbox),
		.uar_bytes = Cap::log_uar_size.get(mailbox) <= 11
				     ? 1u << (20 + Cap::log_uar_size.get(mailbox))
				     : 0,
		.reserved_uars = Cap::reserved_uars.get(mailbox),
		.max_sq_sge = Cap::max_sq_sge.get(mailbox),
		.max_sq_wqe_bytes = Cap::max_sq_wqe_size.get(mailbox),
		.max_rq_sge = Cap::max_rq_sge.get(mailbox),
		.max_rq_wqe_bytes = Cap::max_rq_wqe_size.get(mailbox),
		.log_max_requester_reads = Cap::log_max_requester_reads.get(mailbox),
		.log_max_responder_reads = Cap::log_max_responder_reads.get(mailbox),
		.log_max_message = Cap::log_max_message.get(mailbox),
		.log_max_lso = Cap::log_max_lso.get(mailbox),
		.local_ack_delay = Cap::local_ack_delay.get(mailbox),
		.num_ports = Cap::num_ports.get(mailbox),
		.static_rates = static_cast<u16>(Cap::static_rates.get(mailbox)),
		.flags = Cap::flags.get(mailbox),
		.bmme_flags = Cap::bmme_flags.get(mailbox),
		.reserved_lkey = Cap::reserved_lkey.get(mailbox),
		.max_icm_bytes = Cap::max_icm_size.get(mailbox),
		.entry =
			{
				.qpc = Cap::qpc_entry_size.get(mailbox),
				.auxc = Cap::auxc_entry_size.get(mailbox),
				.altc = Cap::altc_entry_size.get(mailbox),
				.rdmarc = Cap::rdmarc_entry_size.get(mailbox),
				.cqc = Cap::cqc_entry_size.get(mailbox),
				.srqc = Cap::srqc_entry_size.get(mailbox),
				.eqc = Cap::eqc_entry_size.get(mailbox),
				.cmpt = Cap::cmpt_entry_size.get(mailbox),
				.dmpt = Cap::dmpt_entry_size.get(mailbox),
				.mtt = Cap::mtt_entry_size.get(mailbox),
			},
	};

	KERN_TRY((mellanox_icm::check_common<Cap>(cap, mailbox)));
	if (!cap.has(wire::dev_cap_flag::rc) || !cap.has(wire::dev_cap_flag::ud))
		return report_invalid("capability flags", cap.flags);
	// Completions are counted in 24 bits.
	if (cap.log_max_cq_size < 4 || cap.log_max_cq_size > 22)
		return report_invalid("log2 of the largest CQ", cap.log_max_cq_size);
	if (cap.max_sq_wqe_bytes < 128 || cap.max_sq_wqe_bytes > 1024 || !cap.max_sq_sge)
		return report_invalid("largest send descriptor", cap.max_sq_wqe_bytes);
	if (cap.max_rq_wqe_bytes < 64 || cap.max_rq_wqe_bytes > 4096 || !cap.max_rq_sge)
		return report_invalid("largest receive descriptor", cap.max_rq_wqe_bytes);
	if (cap.log_max_message < 12 || cap.log_max_message > 31)
		return report_invalid("log2 of the largest message", cap.log_max_message);
	if (!entry_size_ok(cap.entry.dmpt, 64) || !entry_size_ok(cap.entry.cmpt, 16) ||
	    !entry_size_ok(cap.entry.qpc, 128) || !entry_size_ok(cap.entry.cqc, 32) ||
	    !entry_size_ok(cap.entry.srqc, 32) || !entry_size_ok(cap.entry.eqc, 32) ||
	    !entry_size_ok(cap.entry.auxc, 8) || !entry_size_ok(cap.entry.altc, 8) ||
	    !entry_size_ok(cap.entry.rdmarc, 8))
		return report_invalid("a context entry size", cap.entry.qpc);
	return cap;
}

kern::Result<PortCapabilities> parse_port_capabilities(const u8 *mailbox)
{
	using Port = wire::QueryPort;
	const PortCapabilities port{
		.max_mtu = Port::max_mtu.get(mailbox),
		.gids = 1u << Port::log_max_gids.get(mailbox),
		.pkeys = 1u << Port::log_max_pkeys.get(mailbox),
		.max_vls = Port::max_vls.get(mailbox),
	};
	if (!Port::infiniband_supported.get(mailbox))
		return report_invalid("the port's supported links", 0);
	if (port.max_mtu < 1 || port.max_mtu > 5)
		return report_invalid("the port's largest MTU", port.max_mtu);
	// In address paths, indices of GIDs and of P_Keys have seven bits.
	if (port.gids > 128 || port.pkeys > 128)
		return report_invalid("the port's table sizes",
				      port.gids > 128 ? port.gids : port.pkeys);
	return port;
}

} // namespace mlx4
