// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/commands.hpp"

#include <algorithm>
#include <iterator>

#include "cards/mlx4/core.hpp"

namespace weft::mlx4
{

using hw::mlx4::Opcode;
using hw::mlx4::Status;
using mellanox_icm::Stage;

namespace
{

// Placeholders for mailbox sizes that depend on the command.
constexpr std::size_t kMappings = ~std::size_t{0}; // PageMapping[in_modifier]
constexpr std::size_t kMtts = ~std::size_t{1};     // a header and in_modifier entries
constexpr std::size_t kMcg = ~std::size_t{2};      // an entry of the multicast table
constexpr std::size_t kMad = ~std::size_t{3};      // a MAD, extended or not

} // namespace

struct Commands::Entry {
	Opcode opcode;
	Stage stage; // the first stage in which the command is permitted
	std::size_t in;
	std::size_t out;
	// there is output only if it is requested, by op modifier 0 and an address
	bool out_optional;
	Status (Commands::*handler)(Command &);
};

// Sorted by opcode. Commands that destroy or disable an object are permitted in any stage, because
// a driver that fails to undo its initialisation resets the whole card.
const Commands::Entry Commands::kTable[] = {
	{Opcode::query_dev_cap, Stage::running, 0, 0x100, false, &Commands::query_dev_cap},
	{Opcode::query_fw, Stage::power_on, 0, 0x100, false, &Commands::query_fw},
	{Opcode::query_adapter, Stage::running, 0, 0x100, false, &Commands::query_adapter},
	{Opcode::init_hca, Stage::running, 0x200, 0, false, &Commands::init_hca},
	{Opcode::close_hca, Stage::power_on, 0, 0, false, &Commands::close_hca},
	{Opcode::init_port, Stage::initialised, 0, 0, false, &Commands::init_port},
	{Opcode::close_port, Stage::power_on, 0, 0, false, &Commands::close_port},
	{Opcode::query_hca, Stage::running, 0, 0x200, false, &Commands::query_hca},
	{Opcode::set_port, Stage::initialised, 0x100, 0, false, &Commands::set_port},
	{Opcode::sw2hw_mpt, Stage::initialised, 0x40, 0, false, &Commands::sw2hw_mpt},
	{Opcode::query_mpt, Stage::initialised, 0, 0x40, false, &Commands::query_mpt},
	{Opcode::hw2sw_mpt, Stage::power_on, 0, 0x40, true, &Commands::hw2sw_mpt},
	{Opcode::write_mtt, Stage::initialised, kMtts, 0, false, &Commands::write_mtt},
	{Opcode::map_eq, Stage::power_on, 0, 0, false, &Commands::map_eq},
	{Opcode::sw2hw_eq, Stage::initialised, 0x40, 0, false, &Commands::sw2hw_eq},
	{Opcode::hw2sw_eq, Stage::power_on, 0, 0x40, true, &Commands::hw2sw_eq},
	{Opcode::query_eq, Stage::initialised, 0, 0x40, false, &Commands::query_eq},
	{Opcode::sw2hw_cq, Stage::initialised, 0x40, 0, false, &Commands::sw2hw_cq},
	{Opcode::hw2sw_cq, Stage::power_on, 0, 0x40, true, &Commands::hw2sw_cq},
	{Opcode::query_cq, Stage::initialised, 0, 0x40, false, &Commands::query_cq},
	{Opcode::rst2init_qp, Stage::initialised, 0x100, 0, false, &Commands::rst2init_qp},
	{Opcode::init2rtr_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::rtr2rts_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::rts2rts_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::sqerr2rts_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::to_err_qp, Stage::initialised, 0, 0, false, &Commands::to_err_qp},
	{Opcode::rts2sqd_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::sqd2rts_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::to_rst_qp, Stage::power_on, 0, 0, false, &Commands::to_rst_qp},
	{Opcode::query_qp, Stage::initialised, 0, 0x100, false, &Commands::query_qp},
	{Opcode::conf_special_qp, Stage::power_on, 0, 0, false, &Commands::conf_special_qp},
	{Opcode::mad_ifc, Stage::initialised, kMad, 0x100, false, &Commands::mad_ifc},
	{Opcode::read_mcg, Stage::initialised, 0, kMcg, false, &Commands::read_mcg},
	{Opcode::write_mcg, Stage::initialised, kMcg, 0, false, &Commands::write_mcg},
	{Opcode::mgid_hash, Stage::initialised, 0x10, 0, false, &Commands::mgid_hash},
	{Opcode::modify_cq, Stage::initialised, 0x40, 0, false, &Commands::modify_cq},
	{Opcode::init2init_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::sync_tpt, Stage::power_on, 0, 0, false, &Commands::sync_tpt},
	{Opcode::diag_rprt, Stage::initialised, 0, 0x200, false, &Commands::diag_rprt},
	{Opcode::nop, Stage::power_on, 0, 0, false, &Commands::nop},
	{Opcode::mod_stat_cfg, Stage::running, 0, 0, false, &Commands::mod_stat_cfg},
	{Opcode::sw2hw_srq, Stage::initialised, 0x30, 0, false, &Commands::sw2hw_srq},
	{Opcode::hw2sw_srq, Stage::power_on, 0, 0x30, true, &Commands::hw2sw_srq},
	{Opcode::query_srq, Stage::initialised, 0, 0x30, false, &Commands::query_srq},
	{Opcode::sqd2sqd_qp, Stage::initialised, 0x100, 0, false, &Commands::modify_qp},
	{Opcode::arm_srq, Stage::initialised, 0, 0, false, &Commands::arm_srq},
	{Opcode::query_port, Stage::running, 0, 0x100, false, &Commands::query_port},
	{Opcode::sense_port, Stage::running, 0, 0, false, &Commands::sense_port},
	{Opcode::set_node, Stage::initialised, 0x40, 0, false, &Commands::set_node},
	{Opcode::run_fw, Stage::power_on, 0, 0, false, &Commands::run_fw},
	{Opcode::unmap_icm, Stage::power_on, 0, 0, false, &Commands::unmap_icm},
	{Opcode::map_icm, Stage::running, kMappings, 0, false, &Commands::map_icm},
	{Opcode::unmap_icm_aux, Stage::power_on, 0, 0, false, &Commands::unmap_icm_aux},
	{Opcode::map_icm_aux, Stage::running, kMappings, 0, false, &Commands::map_icm_aux},
	{Opcode::set_icm_size, Stage::running, 0, 0, false, &Commands::set_icm_size},
	{Opcode::unmap_fa, Stage::power_on, 0, 0, false, &Commands::unmap_fa},
	{Opcode::map_fa, Stage::power_on, kMappings, 0, false, &Commands::map_fa},
};

const Commands::Entry *Commands::find(Opcode opcode)
{
	const auto entry = std::ranges::lower_bound(kTable, opcode, {}, &Entry::opcode);
	return entry != std::end(kTable) && entry->opcode == opcode ? entry : nullptr;
}

std::size_t Commands::input_size(const Entry &entry, const Command &command) const
{
	switch (entry.in) {
	case kMappings:
		return std::size_t{command.in_modifier} * hw::mlx4::PageMapping::size;
	case kMtts:
		return hw::mlx4::WriteMttHeader::size +
		       std::size_t{command.in_modifier} * hw::mlx4::MttEntry::size;
	case kMcg:
		return core_.multicast.entry_size();
	case kMad:
		return command.op_modifier & hw::mlx4::MadIfc::op_extended
			       ? hw::mlx4::MadIfc::in_size
			       : hw::mlx4::MadIfc::mad_size;
	default:
		break;
	}
	// The mailbox form of MOD_STAT_CFG has one mailbox, which is input or output depending on
	// the modifier.
	if (entry.opcode == Opcode::mod_stat_cfg &&
	    command.op_modifier == hw::mlx4::ModStatCfg::op_set)
		return hw::mlx4::ModStatCfg::size;
	return entry.in;
}

std::size_t Commands::output_size(const Entry &entry, const Command &command) const
{
	if (entry.out == kMcg)
		return core_.multicast.entry_size();
	if (entry.out_optional && (command.op_modifier != 0 || command.out_param == 0))
		return 0;
	if (entry.opcode == Opcode::mod_stat_cfg &&
	    command.op_modifier == hw::mlx4::ModStatCfg::op_query)
		return hw::mlx4::ModStatCfg::size;
	return entry.out;
}

Status Commands::execute(Command &command)
{
	const Entry *entry = find(command.opcode);
	if (!entry)
		return Status::bad_opcode;
	if (core_.bring_up.stage() < entry->stage)
		return Status::bad_system_state;

	return mailboxes_.run(core_.memory.memory(), command, input_size(*entry, command),
			      output_size(*entry, command),
			      [&] { return (this->*entry->handler)(command); });
}

bool Commands::backed(const hw::mlx4::Field64 &base, std::uint64_t slot, std::size_t size) const
{
	return core_.icm.covers(base.get(core_.init_hca.bytes) + slot * size, size);
}

} // namespace weft::mlx4
