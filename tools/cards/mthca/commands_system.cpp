// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands for the card as a whole: capabilities, bring-up and shut-down.
#include <algorithm>
#include <iterator>
#include <string_view>

#include "cards/mthca/core.hpp"

namespace weft::mthca
{

using hw::mlx4::MptEntry;
using hw::mellanox_icm::MttEntry;
using hw::mellanox_icm::QueryAdapter;
using hw::mthca::InitHca;
using hw::mthca::QueryDevLim;
using hw::mthca::QueryFw;
using hw::mthca::Status;
namespace dev_lim_flag = hw::mthca::dev_lim_flag;

namespace
{

constexpr std::uint32_t kFlags = dev_lim_flag::rc | dev_lim_flag::uc | dev_lim_flag::ud |
				 dev_lim_flag::srq | dev_lim_flag::bad_pkey_counter |
				 dev_lim_flag::bad_qkey_counter | dev_lim_flag::atomics |
				 dev_lim_flag::av_port_check | dev_lim_flag::ud_multicast;
constexpr std::string_view kBoardId = "WEFT_IH3_0000001";

// Functions that store impossible values, which a faulty card reports.
using Lie = void (*)(std::uint8_t *out);
constexpr Lie kFirmwareLies[] = {
	[](std::uint8_t *out) { QueryFw::eq_ci_table.set(out, QueryFw::eq_ci_table.get(out) + 2); },
	[](std::uint8_t *out) { QueryFw::eq_arm.set(out, QueryFw::eq_arm.get(out) | 0xffffc); },
	[](std::uint8_t *out) { QueryFw::error_buffer_size.set(out, 0xffff); },
	[](std::uint8_t *out) {
		QueryFw::clear_interrupt.set(out, QueryFw::clear_interrupt.get(out) + 1);
	},
};
constexpr Lie kLimitLies[] = {
	[](std::uint8_t *out) { QueryDevLim::num_ports.set(out, 0); },
	[](std::uint8_t *out) { QueryDevLim::num_ports.set(out, 15); },
	[](std::uint8_t *out) { QueryDevLim::log_min_page_size.set(out, 31); },
	[](std::uint8_t *out) { QueryDevLim::max_sq_wqe_size.set(out, 0); },
	[](std::uint8_t *out) { QueryDevLim::max_rq_sge.set(out, 0); },
	[](std::uint8_t *out) { QueryDevLim::qpc_entry_size.set(out, 100); },
	[](std::uint8_t *out) { QueryDevLim::mpt_entry_size.set(out, 0); },
	[](std::uint8_t *out) { QueryDevLim::mtt_entry_size.set(out, 16); },
	[](std::uint8_t *out) { QueryDevLim::log_uar_size.set(out, 63); },
	[](std::uint8_t *out) { QueryDevLim::max_icm_size.set(out, 0); },
};

} // namespace

// Registers are reported by their bus addresses, because iPXE writes to these. Linux uses the
// offset within the BAR.
Status Commands::query_fw(Command &command)
{
	constexpr unsigned registers = 0;
	const std::uint64_t base = core_.host.bar_address(registers);
	std::uint8_t *const out = command.out.data();
	QueryFw::fw_pages.set(out, limits::kFirmwarePages);
	QueryFw::version_major.set(out, 5);
	QueryFw::version_minor.set(out, 3);
	QueryFw::version_subminor.set(out, 0);
	QueryFw::command_revision.set(out, 1);
	QueryFw::log_max_commands.set(out, limits::kLogMaxCommands);
	QueryFw::clear_interrupt.set(out, base + limits::kClearInterrupt);
	QueryFw::error_buffer.set(out, base + limits::kErrorBuffer);
	QueryFw::error_buffer_size.set(out, limits::kErrorBufferDwords);
	QueryFw::eq_arm.set(out, base + limits::kEqArm);
	QueryFw::eq_ci_table.set(out, base + limits::kEqConsumerIndexes);
	contradict(core_.faults, kFirmwareLies, out);
	return Status::ok;
}

Status Commands::query_dev_lim(Command &command)
{
	std::uint8_t *const out = command.out.data();
	QueryDevLim::log_max_srq_size.set(out, limits::kLogMaxSrqSize);
	QueryDevLim::log_max_qp_size.set(out, limits::kLogMaxQpSize);
	QueryDevLim::log_reserved_qps.set(out, limits::kLogReservedQps);
	QueryDevLim::log_max_qps.set(out, 24);
	QueryDevLim::log_reserved_srqs.set(out, limits::kLogReservedSrqs);
	// Linux creates its table with this size and unmaps it in chunks of 256 KiB, so it must be
	// a multiple of a chunk.
	QueryDevLim::log_max_srqs.set(out, 16);
	QueryDevLim::log_max_cq_size.set(out, limits::kLogMaxCqSize);
	QueryDevLim::log_reserved_cqs.set(out, limits::kLogReservedCqs);
	QueryDevLim::log_max_cqs.set(out, 24);
	QueryDevLim::log_max_eq_size.set(out, limits::kLogMaxEqSize);
	QueryDevLim::log_max_mpts.set(out, 24);
	QueryDevLim::reserved_eqs.set(out, 0);
	QueryDevLim::log_max_eqs.set(out, limits::kLogMaxEqs);
	QueryDevLim::log_reserved_mtts.set(out, limits::kLogReservedMtts);
	QueryDevLim::log_max_mrw_size.set(out, 40);
	QueryDevLim::log_reserved_mrws.set(out, limits::kLogReservedMpts);
	QueryDevLim::log_max_mtts.set(out, 24);
	QueryDevLim::log_max_requester_reads.set(out, limits::kLogMaxReads);
	QueryDevLim::log_max_responder_reads.set(out, limits::kLogMaxReads);
	QueryDevLim::log_max_responder_reads_global.set(out, 20);
	QueryDevLim::local_ack_delay.set(out, 15);
	QueryDevLim::max_mtu.set(out, static_cast<std::uint32_t>(ib::Mtu::mtu_2048));
	QueryDevLim::port_width.set(out, 3);
	QueryDevLim::max_vls.set(out, 4);
	QueryDevLim::num_ports.set(out, static_cast<std::uint32_t>(core_.ports.size()));
	QueryDevLim::log_max_gids.set(out, limits::kLogGids);
	QueryDevLim::static_rates.set(out, 0xf);
	QueryDevLim::log_max_pkeys.set(out, limits::kLogPkeys);
	QueryDevLim::flags.set(out, kFlags);
	QueryDevLim::reserved_uars.set(out, limits::kReservedUars);
	QueryDevLim::log_uar_size.set(out, limits::kLogUarMegabytes);
	QueryDevLim::log_min_page_size.set(out, 12);
	QueryDevLim::max_sq_sge.set(out, limits::kMaxSge);
	QueryDevLim::max_sq_wqe_size.set(out, limits::kMaxWqe);
	QueryDevLim::max_rq_sge.set(out, limits::kMaxSge);
	QueryDevLim::max_rq_wqe_size.set(out, limits::kMaxWqe);
	QueryDevLim::log_max_qp_mcg.set(out, 6);
	QueryDevLim::log_max_mcg.set(out, 13);
	QueryDevLim::reserved_pds.set(out, 1);
	QueryDevLim::log_max_pds.set(out, 24);
	QueryDevLim::eec_entry_size.set(out, 256);
	QueryDevLim::qpc_entry_size.set(out, 256);
	QueryDevLim::eeec_entry_size.set(out, 32);
	QueryDevLim::eqpc_entry_size.set(out, 32);
	QueryDevLim::eqc_entry_size.set(out, 64);
	QueryDevLim::cqc_entry_size.set(out, 64);
	QueryDevLim::srqc_entry_size.set(out, 32);
	QueryDevLim::uar_scratch_entry_size.set(out, 32);
	QueryDevLim::mtt_entry_size.set(out, MttEntry::size);
	QueryDevLim::mpt_entry_size.set(out, MptEntry::size);
	QueryDevLim::max_icm_size.set(out, std::uint64_t{1} << 40);
	contradict(core_.faults, kLimitLies, out);
	return Status::ok;
}

Status Commands::query_adapter(Command &command)
{
	static_assert(kBoardId.size() == QueryAdapter::board_id_size);
	for (std::size_t i = 0; i < kBoardId.size(); ++i)
		command.out[QueryAdapter::board_id + (i ^ 3)] =
			static_cast<std::uint8_t>(kBoardId[i]);
	return Status::ok;
}

// Returns a status that shows drivers that the card has no memory of its own.
Status Commands::enable_lam(Command &)
{
	return Status::no_local_memory;
}

Status Commands::init_hca(Command &command)
{
	if (!core_.bring_up.may_initialise())
		return Status::bad_system_state;
	const std::uint8_t *const in = command.in.data();
	const std::uint32_t mgm_entry = InitHca::log_mcg_entry_size.get(in);
	const std::uint32_t mgm_hash = InitHca::mcg_hash_size.get(in);
	const std::uint32_t mgms = InitHca::log_mcg_size.get(in);
	// The context of a region has space for the doorbell records of 2^17 queues.
	constexpr std::uint32_t most_uarc_pages = 8;
	const std::uint32_t uarc_pages = InitHca::log_uarc_pages.get(in);
	if (InitHca::log_qps.get(in) > limits::kLogMaxQps ||
	    InitHca::log_srqs.get(in) > limits::kLogMaxSrqs ||
	    InitHca::log_cqs.get(in) > limits::kLogMaxCqs ||
	    InitHca::log_eqs.get(in) > limits::kLogMaxEqs ||
	    InitHca::log_mpts.get(in) > limits::kLogMaxMpts || mgms > limits::kLogMaxMcgs ||
	    uarc_pages > most_uarc_pages)
		return Status::exceeds_limit;
	const std::uint64_t mpts = InitHca::mpt_base.get(in);
	const std::uint64_t mpts_size = MptEntry::size << InitHca::log_mpts.get(in);
	if (mpts % MptEntry::size || mpts + (mpts_size - 1) < mpts)
		return Status::bad_parameter;
	if (mgm_entry < limits::kLogMinMcgEntry || mgm_entry > limits::kLogMaxMcgEntry ||
	    mgm_hash == 0 || mgm_hash > std::uint32_t{1} << mgms ||
	    InitHca::uar_page_size.get(in) != 0)
		return Status::bad_parameter;

	std::copy(command.in.begin(), command.in.end(), core_.init_hca.bytes);
	// Page lists are specified by their address in ICM.
	core_.memory.set_layout({mpts, 0, static_cast<std::uint8_t>(InitHca::log_mpts.get(in))});
	core_.events.reset(InitHca::log_eqs.get(in));
	core_.multicast.reset(mgm_entry, mgm_hash, mgms);
	core_.context.queue_pairs.resize(InitHca::log_qps.get(in));
	core_.context.completion_queues.resize(InitHca::log_cqs.get(in));
	core_.context.shared_receive_queues.resize(InitHca::log_srqs.get(in));
	core_.context.uarc_base = InitHca::uarc_base.get(in);
	core_.context.log_uarc_size = 12 + uarc_pages;
	const std::uint32_t flags = InitHca::flags.get(in);
	core_.context.check_address_vectors = flags & InitHca::flag_av_port_check;
	core_.context.big_endian_host = flags & InitHca::flag_big_endian_host;
	core_.bring_up.initialise();
	return Status::ok;
}

Status Commands::query_hca(Command &command)
{
	std::copy(std::begin(core_.init_hca.bytes), std::end(core_.init_hca.bytes),
		  command.out.begin());
	return Status::ok;
}

} // namespace weft::mthca
