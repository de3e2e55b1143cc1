// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for the card as a whole: capabilities, bring-up and shut-down.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "cards/mlx4/core.hpp"

namespace weft::mlx4
{

using hw::mlx4::DiagReport;
using hw::mlx4::InitHca;
using hw::mlx4::ModStatCfg;
using hw::mlx4::QueryAdapter;
using hw::mlx4::QueryDevCap;
using hw::mlx4::QueryFw;
using hw::mlx4::Status;
namespace bmme_flag = hw::mlx4::bmme_flag;
namespace dev_cap_flag = hw::mlx4::dev_cap_flag;

namespace
{

constexpr std::uint64_t kFlags =
	dev_cap_flag::rc | dev_cap_flag::uc | dev_cap_flag::ud | dev_cap_flag::xrc |
	dev_cap_flag::srq | dev_cap_flag::ipoib_checksum | dev_cap_flag::bad_pkey_counter |
	dev_cap_flag::bad_qkey_counter | dev_cap_flag::big_lso_headers |
	dev_cap_flag::memory_windows | dev_cap_flag::atomics | dev_cap_flag::ud_av_port_check |
	dev_cap_flag::ud_multicast | dev_cap_flag::port_management_event;
// A window of type 2B is bound to both a PD and a queue pair (IBA 10.6.7.2.3).
constexpr std::uint32_t kBmmeFlags = bmme_flag::type2b_windows | bmme_flag::local_invalidate |
				     bmme_flag::remote_invalidate | bmme_flag::type2_windows |
				     bmme_flag::reserved_lkey | bmme_flag::fast_register;
constexpr std::string_view kBoardId = "WEFT_CX2_0000001";

// Functions that store wrong values, which a faulty card may report. Each value contradicts another
// one, or is arithmetically impossible.
using Lie = void (*)(std::uint8_t *out);
constexpr Lie kFirmwareLies[] = {
	[](std::uint8_t *out) { QueryFw::fw_pages.set(out, 0xffff); },
	[](std::uint8_t *out) { QueryFw::command_revision.set(out, 0xfff); },
	[](std::uint8_t *out) { QueryFw::log_max_commands.set(out, 31); },
	[](std::uint8_t *out) { QueryFw::error_buffer_offset.set(out, std::uint64_t{1} << 40); },
	[](std::uint8_t *out) { QueryFw::error_buffer_size.set(out, 0x7fffffff); },
	[](std::uint8_t *out) { QueryFw::clear_interrupt_offset.set(out, ~std::uint64_t{0}); },
};
constexpr Lie kCapabilityLies[] = {
	[](std::uint8_t *out) { QueryDevCap::log_max_qps.set(out, 0); },
	[](std::uint8_t *out) {
		QueryDevCap::log_reserved_qps.set(out, 15);
		QueryDevCap::log_max_qps.set(out, 3);
	},
	[](std::uint8_t *out) { QueryDevCap::log_max_cqs.set(out, 31); },
	[](std::uint8_t *out) { QueryDevCap::log_max_eqs.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::log_max_mpts.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::log_max_mtts.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::num_ports.set(out, 15); },
	[](std::uint8_t *out) { QueryDevCap::num_ports.set(out, 0); },
	[](std::uint8_t *out) {
		QueryDevCap::reserved_uars.set(out, 15);
		QueryDevCap::log_uar_size.set(out, 0);
	},
	[](std::uint8_t *out) { QueryDevCap::log_min_page_size.set(out, 31); },
	[](std::uint8_t *out) { QueryDevCap::max_sq_wqe_size.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::max_rq_wqe_size.set(out, 0xffff); },
	[](std::uint8_t *out) { QueryDevCap::qpc_entry_size.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::cqc_entry_size.set(out, 0xffff); },
	[](std::uint8_t *out) { QueryDevCap::mtt_entry_size.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::dmpt_entry_size.set(out, 3); },
	[](std::uint8_t *out) { QueryDevCap::max_icm_size.set(out, 0); },
	[](std::uint8_t *out) { QueryDevCap::log_max_mcg.set(out, 31); },
};

} // namespace

Status Commands::query_fw(Command &command)
{
	std::uint8_t *const out = command.out.data();
	QueryFw::fw_pages.set(out, limits::kFirmwarePages);
	QueryFw::version_major.set(out, 2);
	QueryFw::version_minor.set(out, 9);
	QueryFw::version_subminor.set(out, 1000);
	QueryFw::command_revision.set(out, hw::mlx4::command_interface_revision);
	QueryFw::log_max_commands.set(out, limits::kLogMaxCommands);
	QueryFw::clear_interrupt_offset.set(out, limits::kClearInterrupt);
	QueryFw::error_buffer_offset.set(out, limits::kErrorBuffer);
	QueryFw::error_buffer_size.set(out, limits::kErrorBufferDwords);
	contradict(core_.faults, kFirmwareLies, out);
	return Status::ok;
}

Status Commands::query_dev_cap(Command &command)
{
	std::uint8_t *const out = command.out.data();
	QueryDevCap::log_max_srq_size.set(out, limits::kLogMaxSrqSize);
	QueryDevCap::log_max_qp_size.set(out, limits::kLogMaxQpSize);
	QueryDevCap::log_reserved_qps.set(out, limits::kLogReservedQps);
	QueryDevCap::log_max_qps.set(out, 18);
	QueryDevCap::log_reserved_srqs.set(out, limits::kLogReservedSrqs);
	QueryDevCap::log_max_srqs.set(out, 16);
	QueryDevCap::log_max_cq_size.set(out, limits::kLogMaxCqSize);
	QueryDevCap::log_reserved_cqs.set(out, limits::kLogReservedCqs);
	QueryDevCap::log_max_cqs.set(out, 16);
	QueryDevCap::log_max_mpts.set(out, 19);
	QueryDevCap::log_reserved_eqs.set(out, limits::kLogReservedEqs);
	QueryDevCap::log_max_eqs.set(out, 7);
	QueryDevCap::log_reserved_mtts.set(out, limits::kLogReservedMtts);
	QueryDevCap::log_max_mrw_size.set(out, 64);
	QueryDevCap::log_reserved_mrws.set(out, limits::kLogReservedMpts);
	QueryDevCap::log_max_mtts.set(out, 28);
	QueryDevCap::log_max_requester_reads.set(out, limits::kLogMaxReads);
	QueryDevCap::log_max_responder_reads.set(out, limits::kLogMaxReads);
	QueryDevCap::log_max_lso.set(out, limits::kLogMaxLso);
	QueryDevCap::log_max_responder_reads_global.set(out, 20);
	QueryDevCap::local_ack_delay.set(out, 15);
	QueryDevCap::num_ports.set(out, static_cast<std::uint32_t>(core_.ports.size()));
	QueryDevCap::log_max_message.set(out, limits::kLogMaxMessage);
	QueryDevCap::static_rates.set(out, 0xff80);
	QueryDevCap::flags.set(out, kFlags);
	QueryDevCap::reserved_uars.set(out, 1);
	QueryDevCap::log_uar_size.set(out, limits::kLogUarMegabytes);
	QueryDevCap::log_min_page_size.set(out, 12);
	QueryDevCap::max_sq_sge.set(out, 62);
	QueryDevCap::max_sq_wqe_size.set(out, 1008);
	QueryDevCap::max_rq_sge.set(out, 32);
	QueryDevCap::max_rq_wqe_size.set(out, 512);
	QueryDevCap::log_max_qp_mcg.set(out, 8);
	QueryDevCap::log_max_mcg.set(out, 13);
	QueryDevCap::reserved_pds.set(out, 4);
	QueryDevCap::log_max_pds.set(out, 23);
	QueryDevCap::log_max_xrcds.set(out, 16);
	QueryDevCap::rdmarc_entry_size.set(out, limits::kRdmarcEntry);
	QueryDevCap::qpc_entry_size.set(out, limits::kQpcEntry);
	QueryDevCap::auxc_entry_size.set(out, limits::kAuxcEntry);
	QueryDevCap::altc_entry_size.set(out, limits::kAltcEntry);
	QueryDevCap::eqc_entry_size.set(out, limits::kEqcEntry);
	QueryDevCap::cqc_entry_size.set(out, limits::kCqcEntry);
	QueryDevCap::srqc_entry_size.set(out, limits::kSrqcEntry);
	QueryDevCap::cmpt_entry_size.set(out, limits::kCmptEntry);
	QueryDevCap::mtt_entry_size.set(out, hw::mlx4::MttEntry::size);
	QueryDevCap::dmpt_entry_size.set(out, hw::mlx4::MptEntry::size);
	QueryDevCap::bmme_flags.set(out, kBmmeFlags);
	QueryDevCap::reserved_lkey.set(out, limits::kReservedLkey);
	QueryDevCap::max_icm_size.set(out, std::uint64_t{1} << 40);
	contradict(core_.faults, kCapabilityLies, out);
	return Status::ok;
}

Status Commands::query_adapter(Command &command)
{
	std::uint8_t *const out = command.out.data();
	QueryAdapter::interrupt_pin.set(out, limits::kInterruptPin);
	static_assert(kBoardId.size() == QueryAdapter::board_id_size);
	for (std::size_t i = 0; i < kBoardId.size(); ++i)
		out[QueryAdapter::board_id + (i ^ 3)] = static_cast<std::uint8_t>(kBoardId[i]);
	return Status::ok;
}

Status Commands::mod_stat_cfg(Command &command)
{
	if (command.op_modifier == ModStatCfg::op_set) {
		// Only pages of 4 KiB are supported. All other settings are accepted and ignored.
		const std::uint8_t *const in = command.in.data();
		const bool other_pages = ModStatCfg::log_page_size_valid.get(in) &&
					 ModStatCfg::log_page_size.get(in) != 0;
		return other_pages ? Status::bad_parameter : Status::ok;
	}
	if (command.op_modifier != ModStatCfg::op_query)
		return Status::bad_opcode;
	const CardPort *const chosen = port(ModStatCfg::in_modifier_port.of(command.in_modifier));
	if (!chosen)
		return Status::bad_index;
	std::uint8_t *const out = command.out.data();
	ModStatCfg::port_guid_high_valid.set(out, 1);
	ModStatCfg::port_guid_high.set(out, static_cast<std::uint32_t>(chosen->guid() >> 32));
	ModStatCfg::port_guid_low_valid.set(out, 1);
	ModStatCfg::port_guid_low.set(out, static_cast<std::uint32_t>(chosen->guid()));
	ModStatCfg::node_guid_high_valid.set(out, 1);
	ModStatCfg::node_guid_high.set(out,
				       static_cast<std::uint32_t>(core_.identity.node_guid >> 32));
	ModStatCfg::node_guid_low_valid.set(out, 1);
	ModStatCfg::node_guid_low.set(out, static_cast<std::uint32_t>(core_.identity.node_guid));
	return Status::ok;
}

Status Commands::init_hca(Command &command)
{
	if (!core_.bring_up.may_initialise())
		return Status::bad_system_state;
	const std::uint8_t *const in = command.in.data();
	if (InitHca::version.get(in) != InitHca::version_value)
		return Status::bad_parameter;

	const std::uint32_t mcg_entry = InitHca::log_mcg_entry_size.get(in);
	const std::uint32_t mcg_hash = InitHca::log_mcg_hash_size.get(in);
	const std::uint32_t mcgs = InitHca::log_mcg_size.get(in);
	if (InitHca::log_qps.get(in) > limits::kLogMaxQps ||
	    InitHca::log_srqs.get(in) > limits::kLogMaxSrqs ||
	    InitHca::log_cqs.get(in) > limits::kLogMaxCqs ||
	    InitHca::log_eqs.get(in) > limits::kLogMaxEqs ||
	    InitHca::log_dmpts.get(in) > limits::kLogMaxMpts || mcgs > limits::kLogMaxMcgs)
		return Status::exceeds_limit;
	const std::uint64_t dmpts = InitHca::dmpt_base.get(in);
	const std::uint64_t dmpts_size = hw::mlx4::MptEntry::size << InitHca::log_dmpts.get(in);
	if (dmpts % hw::mlx4::MptEntry::size || dmpts + (dmpts_size - 1) < dmpts)
		return Status::bad_parameter;
	if (mcg_entry < limits::kLogMinMcgEntry || mcg_entry > limits::kLogMaxMcgEntry ||
	    mcg_hash > mcgs || InitHca::log_uar_page_size.get(in) != 0)
		return Status::bad_parameter;

	std::copy(command.in.begin(), command.in.end(), core_.init_hca.bytes);
	core_.memory.set_layout({dmpts, InitHca::mtt_base.get(in),
				 static_cast<std::uint8_t>(InitHca::log_dmpts.get(in))});
	core_.events.reset(InitHca::log_eqs.get(in));
	core_.multicast.reset(mcg_entry, std::uint32_t{1} << mcg_hash, mcgs);
	core_.context.queue_pairs.resize(InitHca::log_qps.get(in));
	core_.context.completion_queues.resize(InitHca::log_cqs.get(in));
	core_.context.shared_receive_queues.resize(InitHca::log_srqs.get(in));
	const std::uint32_t flags = InitHca::flags.get(in);
	core_.context.check_address_vectors = flags & InitHca::flag_ud_av_check;
	core_.context.ipoib_checksum = flags & InitHca::flag_ipoib_checksum;
	core_.context.big_endian_host = flags & InitHca::flag_big_endian_host;
	core_.bring_up.initialise();
	return Status::ok;
}

Status Commands::query_hca(Command &command)
{
	std::copy(std::begin(core_.init_hca.bytes), std::end(core_.init_hca.bytes),
		  command.out.begin());
	InitHca::core_clock.set(command.out.data(), limits::kCoreClockMhz);
	return Status::ok;
}

Status Commands::diag_rprt(Command &command)
{
	if (command.op_modifier != DiagReport::op_transport_errors)
		return Status::bad_opcode;
	std::uint8_t *const out = command.out.data();
	const Diagnostics &counted = core_.diagnostics;
	DiagReport::rq_local_length.set(out, counted.rq_local_length);
	DiagReport::sq_local_length.set(out, counted.sq_local_length);
	DiagReport::rq_local_qp_operation.set(out, counted.rq_local_qp_operation);
	DiagReport::sq_local_qp_operation.set(out, counted.sq_local_qp_operation);
	DiagReport::rq_local_protection.set(out, counted.rq_local_protection);
	DiagReport::sq_local_protection.set(out, counted.sq_local_protection);
	DiagReport::rq_flushed.set(out, counted.rq_flushed);
	DiagReport::sq_flushed.set(out, counted.sq_flushed);
	DiagReport::sq_window_bind.set(out, counted.sq_window_bind);
	DiagReport::sq_bad_response.set(out, counted.sq_bad_response);
	DiagReport::sq_remote_invalid_request.set(out, counted.sq_remote_invalid_request);
	DiagReport::rq_remote_invalid_request.set(out, counted.rq_remote_invalid_request);
	DiagReport::sq_remote_access.set(out, counted.sq_remote_access);
	DiagReport::rq_remote_access.set(out, counted.rq_remote_access);
	DiagReport::sq_remote_operation.set(out, counted.sq_remote_operation);
	DiagReport::sq_retries_exceeded.set(out, counted.sq_retries_exceeded);
	DiagReport::sq_rnr_retries_exceeded.set(out, counted.sq_rnr_retries_exceeded);
	DiagReport::rq_rnr_naks.set(out, counted.rq_rnr_naks);
	DiagReport::sq_rnr_naks.set(out, counted.sq_rnr_naks);
	DiagReport::rq_out_of_sequence.set(out, counted.rq_out_of_sequence);
	DiagReport::sq_out_of_sequence.set(out, counted.sq_out_of_sequence);
	DiagReport::rq_ud_discarded.set(out, counted.rq_ud_discarded);
	DiagReport::cq_overflows.set(out, counted.cq_overflows);
	return Status::ok;
}

} // namespace weft::mlx4
