// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the commands that initialise and shut down the card, report its capabilities, and
// allocate numbers: protection domains, XRC domains, UARs.
#include <algorithm>
#include <array>
#include <cstring>

#include "cards/mlx5/core.hpp"

namespace weft::mlx5
{

using hw::mlx5::HcaCap;
using hw::mlx5::ManagePages;
using hw::mlx5::Opcode;
using hw::mlx5::QueryAdapter;
using hw::mlx5::QueryIssi;
using hw::mlx5::Status;

namespace
{

// Kinds of numbers, with the commands that allocate and free them.
struct Numbers {
	Opcode alloc;
	Opcode dealloc;
	NumberPool Core::*pool;
	std::vector<bool> Core::*used;
};

constexpr Numbers kNumbers[] = {
	{Opcode::alloc_pd, Opcode::dealloc_pd, &Core::pds, &Core::pds_used},
	{Opcode::alloc_xrcd, Opcode::dealloc_xrcd, &Core::xrc_domains, &Core::xrc_domains_used},
	{Opcode::alloc_transport_domain, Opcode::dealloc_transport_domain, &Core::transport_domains,
	 &Core::transport_domains_used},
	{Opcode::alloc_uar, Opcode::dealloc_uar, &Core::uars, &Core::uars_used},
};

const Numbers &numbers_of(Opcode opcode)
{
	for (const Numbers &numbers : kNumbers)
		if (numbers.alloc == opcode || numbers.dealloc == opcode)
			return numbers;
	return kNumbers[0];
}

// The stepping of the interface (ISSI) that the card offers: 1, with which drivers use the commands
// on receive memory pools and XRC SRQs.
constexpr std::uint32_t kSupportedIssi = 1u << 1;

} // namespace

Status Commands::nop(Command &)
{
	return Status::ok;
}

Status Commands::enable_hca(Command &)
{
	if (core_.stage == Stage::power_on)
		core_.stage = Stage::enabled;
	return Status::ok;
}

Status Commands::disable_hca(Command &)
{
	core_.close();
	core_.restore_rates();
	core_.capabilities.reset();
	core_.stage = Stage::power_on;
	return Status::ok;
}

Status Commands::init_hca(Command &)
{
	if (core_.stage == Stage::initialised)
		return Status::bad_system_state;
	core_.open();
	return Status::ok;
}

Status Commands::teardown_hca(Command &)
{
	core_.close();
	return Status::ok;
}

Status Commands::query_issi(Command &command)
{
	QueryIssi::current.set(command.out.data(), 0);
	QueryIssi::supported.set(command.out.data(), kSupportedIssi);
	return Status::ok;
}

Status Commands::set_issi(Command &command)
{
	return QueryIssi::current.get(command.in.data()) == 1 ? Status::ok : Status::bad_parameter;
}

// The model keeps its tables in the daemon's memory, so it requests no pages of the guest.
Status Commands::query_pages(Command &command)
{
	ManagePages::count.set(command.out.data(), 0);
	return Status::ok;
}

Status Commands::manage_pages(Command &command)
{
	switch (command.op_modifier) {
	case ManagePages::op_cannot_give:
		return Status::ok;
	case ManagePages::op_give:
		return ManagePages::count.get(command.in.data()) == 0 ? Status::ok
								      : Status::bad_parameter;
	case ManagePages::op_take:
		ManagePages::count_out.set(command.out.data(), 0);
		return Status::ok;
	default:
		return Status::bad_opcode;
	}
}

Status Commands::query_hca_cap(Command &command)
{
	const std::uint32_t kind = command.op_modifier >> 1;
	std::array<std::uint8_t, HcaCap::size> page;
	if (core_.capabilities.query(kind, command.op_modifier & 1, page)) {
		Capabilities::distort(core_.faults, kind, page);
		const auto out = command.out.subspan(HcaCap::offset);
		std::copy_n(page.begin(), std::min(page.size(), out.size()), out.begin());
		return Status::ok;
	}
	core_.unsupported.note(RequestKind::capabilities, kind);
	return Status::bad_parameter;
}

Status Commands::set_hca_cap(Command &command)
{
	std::array<std::uint8_t, HcaCap::size> page{};
	const auto in = command.in.subspan(HcaCap::offset);
	std::copy_n(in.begin(), std::min(page.size(), in.size()), page.begin());
	return core_.capabilities.set(command.op_modifier >> 1, page) ? Status::ok
								      : Status::bad_parameter;
}

Status Commands::query_adapter(Command &command)
{
	QueryAdapter::vendor_id.set(command.out.data(), core_.identity.vendor_id);
	static_assert(sizeof(limits::kBoardId) <= QueryAdapter::board_id_size);
	std::memcpy(command.out.data() + QueryAdapter::board_id, limits::kBoardId,
		    sizeof(limits::kBoardId));
	return Status::ok;
}

Status Commands::alloc_number(Command &command)
{
	const Numbers &numbers = numbers_of(command.opcode);
	const auto number = command.opcode == Opcode::alloc_uar ? core_.take_uar()
								: (core_.*numbers.pool).take();
	if (!number)
		return Status::no_resources;
	(core_.*numbers.used)[*number] = true;
	hw::mlx5::object_number.set(command.out.data(), *number);
	return Status::ok;
}

Status Commands::dealloc_number(Command &command)
{
	const Numbers &numbers = numbers_of(command.opcode);
	const std::uint32_t number = hw::mlx5::object_number.get(command.in.data());
	std::vector<bool> &used = core_.*numbers.used;
	if (number >= used.size() || !used[number])
		return Status::bad_resource;
	used[number] = false;
	if (command.opcode == Opcode::dealloc_uar)
		core_.give_uar(number);
	else
		(core_.*numbers.pool).give(number);
	return Status::ok;
}

} // namespace weft::mlx5
