// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mthca/commands.hpp"

#include <algorithm>
#include <iterator>

#include "cards/mthca/core.hpp"

namespace weft::mthca
{

using hw::mthca::Opcode;
using hw::mthca::Status;
using mellanox_icm::Stage;
namespace opcode = hw::mthca::opcode;

namespace
{

// Placeholders for mailbox sizes that depend on the command.
constexpr std::size_t kMappings = ~std::size_t{0}; // PageMapping[in_modifier]
constexpr std::size_t kMgm = ~std::size_t{1};      // an entry of the multicast table
constexpr std::size_t kMad = ~std::size_t{2};      // a MAD, extended or not
constexpr std::size_t kQp = hw::mthca::qp_mailbox_size;

} // namespace

struct Commands::Entry {
	Opcode code;
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
	{opcode::query_dev_lim, Stage::running, 0, 0x100, false, &Commands::query_dev_lim},
	{Opcode::query_fw, Stage::power_on, 0, 0x100, false, &Commands::query_fw},
	{Opcode::query_adapter, Stage::running, 0, 0x100, false, &Commands::query_adapter},
	{Opcode::init_hca, Stage::running, 0x200, 0, false, &Commands::init_hca},
	{Opcode::close_hca, Stage::power_on, 0, 0, false, &Commands::close_hca},
	{opcode::init_ib, Stage::initialised, hw::mthca::InitIb::size, 0, false,
	 &Commands::init_ib},
	{opcode::close_ib, Stage::power_on, 0, 0, false, &Commands::close_ib},
	{Opcode::query_hca, Stage::running, 0, 0x200, false, &Commands::query_hca},
	{opcode::set_ib, Stage::initialised, hw::mthca::SetIb::size, 0, false, &Commands::set_ib},
	{Opcode::sw2hw_mpt, Stage::initialised, 0x40, 0, false, &Commands::sw2hw_mpt},
	{Opcode::hw2sw_mpt, Stage::power_on, 0, 0x40, true, &Commands::hw2sw_mpt},
	{Opcode::map_eq, Stage::power_on, 0, 0, false, &Commands::map_eq},
	{Opcode::sw2hw_eq, Stage::initialised, 0x40, 0, false, &Commands::sw2hw_eq},
	{Opcode::hw2sw_eq, Stage::power_on, 0, 0x40, true, &Commands::hw2sw_eq},
	{Opcode::sw2hw_cq, Stage::initialised, 0x40, 0, false, &Commands::sw2hw_cq},
	{Opcode::hw2sw_cq, Stage::power_on, 0, 0x40, true, &Commands::hw2sw_cq},
	{Opcode::query_cq, Stage::initialised, 0, 0x40, false, &Commands::query_cq},
	{Opcode::rst2init_qp, Stage::initialised, kQp, 0, false, &Commands::rst2init_qp},
	{Opcode::init2rtr_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::rtr2rts_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::rts2rts_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::sqerr2rts_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::to_err_qp, Stage::initialised, 0, 0, false, &Commands::to_err_qp},
	{Opcode::rts2sqd_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::sqd2rts_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::to_rst_qp, Stage::power_on, 0, 0, false, &Commands::to_rst_qp},
	{Opcode::query_qp, Stage::initialised, 0, kQp, false, &Commands::query_qp},
	{Opcode::conf_special_qp, Stage::power_on, 0, 0, false, &Commands::conf_special_qp},
	{Opcode::mad_ifc, Stage::initialised, kMad, 0x100, false, &Commands::mad_ifc},
	{Opcode::read_mcg, Stage::initialised, 0, kMgm, false, &Commands::read_mcg},
	{Opcode::write_mcg, Stage::initialised, kMgm, 0, false, &Commands::write_mgm},
	{Opcode::mgid_hash, Stage::initialised, 0x10, 0, false, &Commands::mgid_hash},
	{opcode::resize_cq, Stage::initialised, hw::mthca::ResizeCq::size, 0, false,
	 &Commands::resize_cq},
	{Opcode::init2init_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::sync_tpt, Stage::power_on, 0, 0, false, &Commands::sync_tpt},
	{Opcode::nop, Stage::power_on, 0, 0, false, &Commands::nop},
	{Opcode::sw2hw_srq, Stage::initialised, 0x30, 0, false, &Commands::sw2hw_srq},
	{Opcode::hw2sw_srq, Stage::power_on, 0, 0x30, true, &Commands::hw2sw_srq},
	{Opcode::query_srq, Stage::initialised, 0, 0x30, false, &Commands::query_srq},
	{Opcode::sqd2sqd_qp, Stage::initialised, kQp, 0, false, &Commands::modify_qp},
	{Opcode::arm_srq, Stage::initialised, 0, 0, false, &Commands::arm_srq},
	{Opcode::run_fw, Stage::power_on, 0, 0, false, &Commands::run_fw},
	{opcode::enable_lam, Stage::power_on, 0, 0, false, &Commands::enable_lam},
	{Opcode::unmap_icm, Stage::power_on, 0, 0, false, &Commands::unmap_icm},
	{Opcode::map_icm, Stage::running, kMappings, 0, false, &Commands::map_icm},
	{Opcode::unmap_icm_aux, Stage::power_on, 0, 0, false, &Commands::unmap_icm_aux},
	{Opcode::map_icm_aux, Stage::running, kMappings, 0, false, &Commands::map_icm_aux},
	{Opcode::set_icm_size, Stage::running, 0, 0, false, &Commands::set_icm_size},
	{Opcode::unmap_fa, Stage::power_on, 0, 0, false, &Commands::unmap_fa},
	{Opcode::map_fa, Stage::power_on, kMappings, 0, false, &Commands::map_fa},
};

std::size_t Commands::input_size(const Entry &entry, const Command &command) const
{
	switch (entry.in) {
	case kMappings:
		return std::size_t{command.in_modifier} * hw::mellanox_icm::PageMapping::size;
	case kMgm:
		return core_.multicast.entry_size();
	case kMad:
		return command.op_modifier & hw::mellanox_icm::MadIfc::op_extended
			       ? hw::mellanox_icm::MadIfc::in_size
			       : hw::mellanox_icm::MadIfc::mad_size;
	default:
		return entry.in;
	}
}

std::size_t Commands::output_size(const Entry &entry, const Command &command) const
{
	if (entry.out == kMgm)
		return core_.multicast.entry_size();
	return entry.out_optional && (command.op_modifier != 0 || command.out_param == 0)
		       ? 0
		       : entry.out;
}

Status Commands::execute(Command &command)
{
	const auto entry = std::ranges::lower_bound(kTable, command.opcode, {}, &Entry::code);
	if (entry == std::end(kTable) || entry->code != command.opcode)
		return Status::bad_opcode;
	if (core_.bring_up.stage() < entry->stage)
		return Status::bad_system_state;
	return mailboxes_.run(core_.memory.memory(), command, input_size(*entry, command),
			      output_size(*entry, command),
			      [&] { return (this->*entry->handler)(command); });
}

} // namespace weft::mthca
