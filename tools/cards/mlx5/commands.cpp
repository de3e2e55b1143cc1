// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/commands.hpp"

#include <algorithm>
#include <span>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::Opcode;
using hw::mlx5::Status;

namespace
{

// Lengths of inputs and outputs. Drivers may send longer inputs; they may request a shorter output
// only where the table permits it.
constexpr std::size_t kHead = 8;
constexpr std::size_t kShort = 0x10;
constexpr std::size_t kObject = hw::mlx5::pages_offset;
constexpr std::size_t kQp = hw::mlx5::qp_command::size;
constexpr std::size_t kRaw = hw::mlx5::raw_command::size;
constexpr std::size_t kFlow = hw::mlx5::flow::command_size;
// Linux uses whole pages of capabilities; iPXE uses their first 256 bytes.
constexpr std::size_t kPage = hw::mlx5::HcaCap::offset + hw::mlx5::HcaCap::least;

} // namespace

struct Commands::Entry {
	Opcode code;
	Stage stage; // the first stage at which the command is permitted
	std::size_t in;
	std::size_t out;
	Status (Commands::*handler)(Command &);
};

// Sorted by opcode.
const Commands::Entry Commands::kTable[] = {
	{Opcode::query_hca_cap, Stage::enabled, kHead, kPage, &Commands::query_hca_cap},
	{Opcode::query_adapter, Stage::enabled, kHead, hw::mlx5::QueryAdapter::size,
	 &Commands::query_adapter},
	{Opcode::init_hca, Stage::enabled, kHead, kHead, &Commands::init_hca},
	{Opcode::teardown_hca, Stage::enabled, kHead, kHead, &Commands::teardown_hca},
	{Opcode::enable_hca, Stage::power_on, kHead, kHead, &Commands::enable_hca},
	{Opcode::disable_hca, Stage::power_on, kHead, kHead, &Commands::disable_hca},
	{Opcode::query_pages, Stage::enabled, kHead, kShort, &Commands::query_pages},
	{Opcode::manage_pages, Stage::enabled, kShort, kShort, &Commands::manage_pages},
	{Opcode::set_hca_cap, Stage::enabled, kPage, kHead, &Commands::set_hca_cap},
	{Opcode::query_issi, Stage::enabled, kHead, hw::mlx5::QueryIssi::size,
	 &Commands::query_issi},
	{Opcode::set_issi, Stage::enabled, kShort, kHead, &Commands::set_issi},
	{Opcode::set_driver_version, Stage::enabled, kHead, kHead, &Commands::nop},
	{Opcode::create_mkey, Stage::initialised, kObject, kShort, &Commands::create_mkey},
	{Opcode::query_mkey, Stage::initialised, kShort, 0x50, &Commands::query_mkey},
	{Opcode::destroy_mkey, Stage::initialised, kShort, kHead, &Commands::destroy_mkey},
	{Opcode::create_eq, Stage::initialised, kObject, kShort, &Commands::create_eq},
	{Opcode::destroy_eq, Stage::initialised, kShort, kHead, &Commands::destroy_eq},
	{Opcode::query_eq, Stage::initialised, kShort, 0x50, &Commands::query_eq},
	{Opcode::create_cq, Stage::initialised, kObject, kShort, &Commands::create_cq},
	{Opcode::destroy_cq, Stage::initialised, kShort, kHead, &Commands::destroy_cq},
	{Opcode::query_cq, Stage::initialised, kShort, 0x50, &Commands::query_cq},
	{Opcode::modify_cq, Stage::initialised, 0x50, kHead, &Commands::modify_cq},
	{Opcode::create_qp, Stage::initialised, kQp, kShort, &Commands::create_qp},
	{Opcode::destroy_qp, Stage::initialised, kShort, kHead, &Commands::destroy_qp},
	{Opcode::rst2init_qp, Stage::initialised, kQp, kHead, &Commands::rst2init_qp},
	{Opcode::init2rtr_qp, Stage::initialised, kQp, kHead, &Commands::modify_qp},
	{Opcode::rtr2rts_qp, Stage::initialised, kQp, kHead, &Commands::modify_qp},
	{Opcode::rts2rts_qp, Stage::initialised, kQp, kHead, &Commands::modify_qp},
	{Opcode::sqerr2rts_qp, Stage::initialised, kQp, kHead, &Commands::modify_qp},
	{Opcode::to_err_qp, Stage::initialised, kShort, kHead, &Commands::to_err_qp},
	{Opcode::to_rst_qp, Stage::initialised, kShort, kHead, &Commands::to_rst_qp},
	{Opcode::query_qp, Stage::initialised, kShort,
	 hw::mlx5::qp_command::context + hw::mlx5::QpContext::size, &Commands::query_qp},
	{Opcode::sqd2rts_qp, Stage::initialised, kQp, kHead, &Commands::modify_qp},
	{Opcode::mad_ifc, Stage::initialised, hw::mlx5::MadIfc::size, hw::mlx5::MadIfc::size,
	 &Commands::mad_ifc},
	{Opcode::init2init_qp, Stage::initialised, kQp, kHead, &Commands::modify_qp},
	{Opcode::create_xrc_srq, Stage::initialised, kObject, kShort, &Commands::create_xrc_srq},
	{Opcode::destroy_xrc_srq, Stage::initialised, kShort, kHead, &Commands::destroy_srq},
	{Opcode::query_xrc_srq, Stage::initialised, kShort, 0x50, &Commands::query_xrc_srq},
	{Opcode::arm_xrc_srq, Stage::initialised, kShort, kHead, &Commands::arm_xrc_srq},
	{Opcode::query_hca_vport_context, Stage::initialised, kShort, hw::mlx5::VportContext::least,
	 &Commands::query_vport_context},
	{Opcode::query_hca_vport_gid, Stage::initialised, kShort, kShort,
	 &Commands::query_vport_gid},
	{Opcode::query_hca_vport_pkey, Stage::initialised, kShort, kShort,
	 &Commands::query_vport_pkey},
	{Opcode::alloc_pd, Stage::initialised, kHead, kShort, &Commands::alloc_number},
	{Opcode::dealloc_pd, Stage::initialised, kShort, kHead, &Commands::dealloc_number},
	{Opcode::alloc_uar, Stage::initialised, kHead, kShort, &Commands::alloc_number},
	{Opcode::dealloc_uar, Stage::initialised, kShort, kHead, &Commands::dealloc_number},
	{Opcode::access_register, Stage::enabled, kShort, kShort, &Commands::access_register},
	{Opcode::attach_to_mcg, Stage::initialised, hw::mlx5::McgMember::size, kHead,
	 &Commands::attach_to_mcg},
	{Opcode::detach_from_mcg, Stage::initialised, hw::mlx5::McgMember::size, kHead,
	 &Commands::detach_from_mcg},
	{Opcode::nop, Stage::power_on, kHead, kHead, &Commands::nop},
	{Opcode::alloc_xrcd, Stage::initialised, kHead, kShort, &Commands::alloc_number},
	{Opcode::dealloc_xrcd, Stage::initialised, kShort, kHead, &Commands::dealloc_number},
	{Opcode::create_rmp, Stage::initialised, hw::mlx5::rmp_command::pages, kShort,
	 &Commands::create_rmp},
	{Opcode::modify_rmp, Stage::initialised,
	 hw::mlx5::rmp_command::context + hw::mlx5::RmpContext::size, kHead, &Commands::modify_rmp},
	{Opcode::destroy_rmp, Stage::initialised, kShort, kHead, &Commands::destroy_srq},
	{Opcode::query_rmp, Stage::initialised, kShort,
	 hw::mlx5::rmp_command::context + hw::mlx5::RmpContext::size, &Commands::query_rmp},
};

// Additional commands of a card with enhanced IPoIB, sorted by opcode.
const Commands::Entry Commands::kEnhancedIpoib[] = {
	{Opcode::query_vport_counter, Stage::initialised, hw::mlx5::VportCounter::in_size,
	 hw::mlx5::VportCounter::size, &Commands::query_vport_counter},
	{Opcode::alloc_q_counter, Stage::initialised, kHead, kShort, &Commands::alloc_q_counter},
	{Opcode::dealloc_q_counter, Stage::initialised, kShort, kHead,
	 &Commands::dealloc_q_counter},
	{Opcode::query_q_counter, Stage::initialised, hw::mlx5::CounterSet::query_size,
	 hw::mlx5::CounterSet::size, &Commands::query_q_counter},
	{Opcode::alloc_transport_domain, Stage::initialised, kHead, kShort,
	 &Commands::alloc_number},
	{Opcode::dealloc_transport_domain, Stage::initialised, kShort, kHead,
	 &Commands::dealloc_number},
	{Opcode::create_tir, Stage::initialised, kRaw, kShort, &Commands::create_tir},
	{Opcode::modify_tir, Stage::initialised, kRaw, kHead, &Commands::modify_tir},
	{Opcode::destroy_tir, Stage::initialised, kShort, kHead, &Commands::destroy_tir},
	{Opcode::create_sq, Stage::initialised, kRaw, kShort, &Commands::create_sq},
	{Opcode::modify_sq, Stage::initialised, kRaw, kHead, &Commands::modify_sq},
	{Opcode::destroy_sq, Stage::initialised, kShort, kHead, &Commands::destroy_sq},
	{Opcode::query_sq, Stage::initialised, kShort, kRaw, &Commands::query_sq},
	{Opcode::create_rq, Stage::initialised, kRaw, kShort, &Commands::create_rq},
	{Opcode::modify_rq, Stage::initialised, kRaw, kHead, &Commands::modify_rq},
	{Opcode::destroy_rq, Stage::initialised, kShort, kHead, &Commands::destroy_rq},
	{Opcode::query_rq, Stage::initialised, kShort, kRaw, &Commands::query_rq},
	{Opcode::create_tis, Stage::initialised, hw::mlx5::raw_command::tis_size, kShort,
	 &Commands::create_tis},
	{Opcode::destroy_tis, Stage::initialised, kShort, kHead, &Commands::destroy_tis},
	{Opcode::create_rqt, Stage::initialised, kRaw, kShort, &Commands::create_rqt},
	{Opcode::modify_rqt, Stage::initialised, kRaw, kHead, &Commands::modify_rqt},
	{Opcode::destroy_rqt, Stage::initialised, kShort, kHead, &Commands::destroy_rqt},
	{Opcode::set_flow_table_root, Stage::initialised, kFlow, kHead,
	 &Commands::set_flow_table_root},
	{Opcode::create_flow_table, Stage::initialised, kFlow, kShort,
	 &Commands::create_flow_table},
	{Opcode::destroy_flow_table, Stage::initialised, kFlow, kHead,
	 &Commands::destroy_flow_table},
	{Opcode::create_flow_group, Stage::initialised, hw::mlx5::FlowGroup::size, kShort,
	 &Commands::create_flow_group},
	{Opcode::destroy_flow_group, Stage::initialised, kFlow, kHead,
	 &Commands::destroy_flow_group},
	{Opcode::set_flow_table_entry, Stage::initialised, hw::mlx5::FlowEntry::list, kHead,
	 &Commands::set_flow_table_entry},
	{Opcode::delete_flow_table_entry, Stage::initialised, kFlow, kHead,
	 &Commands::delete_flow_table_entry},
	{Opcode::modify_flow_table, Stage::initialised, kFlow, kHead, &Commands::modify_flow_table},
};

Status Commands::execute(Command &command)
{
	const auto find = [&](std::span<const Entry> table) {
		const auto entry =
			std::ranges::lower_bound(table, command.opcode, {}, &Entry::code);
		return entry == table.end() || entry->code != command.opcode ? nullptr : &*entry;
	};
	const Entry *entry = find(kTable);
	if (!entry && core_.enhanced_ipoib)
		entry = find(kEnhancedIpoib);
	if (!entry) {
		core_.unsupported.note(RequestKind::command,
				       static_cast<std::uint32_t>(command.opcode));
		return Status::bad_opcode;
	}
	if (core_.stage < entry->stage)
		return Status::bad_system_state;
	if (command.in.size() < entry->in)
		return Status::bad_input_length;
	if (command.out.size() < entry->out)
		return Status::bad_output_length;
	return (this->*entry->handler)(command);
}

// The length in the entries of iPXE's driver for these commands does not include the context, which
// is in the mailbox.
std::size_t Commands::whole_input(Opcode opcode)
{
	switch (opcode) {
	case Opcode::rst2init_qp:
	case Opcode::init2rtr_qp:
	case Opcode::rtr2rts_qp:
	case Opcode::rts2rts_qp:
	case Opcode::sqerr2rts_qp:
	case Opcode::sqd2rts_qp:
	case Opcode::init2init_qp:
		return kQp;
	default:
		return 0;
	}
}

Status Commands::make_pages(const Command &command, std::size_t offset, const PageLayout &layout,
			    PageList &out)
{
	const auto list = command.in.size() > offset ? command.in.subspan(offset)
						     : std::span<const std::uint8_t>();
	const auto problem = PageList::create(core_.memory.budget(), layout, list, out);
	if (!problem)
		return Status::ok;
	switch (*problem) {
	case PageList::Problem::page_size:
		return Status::bad_parameter;
	case PageList::Problem::too_few_pages:
		return Status::bad_input_length;
	case PageList::Problem::budget:
		break;
	}
	return Status::exceeds_limit;
}

} // namespace weft::mlx5
