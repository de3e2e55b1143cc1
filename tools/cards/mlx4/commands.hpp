// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the firmware commands of the ConnectX-2. Each command checks all its parameters before
// it changes anything.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hw/mlx4/commands.hpp>
#include <hw/mlx4/contexts.hpp>

#include "cards/mlx4/names.hpp"
#include "cards/hca/port.hpp"
#include "cards/mellanox_icm/common_commands.hpp"
#include "cards/mlx4/qp_context.hpp"

namespace weft::mlx4
{

class Core;

class Commands : private mellanox_icm::CommonCommands<Core, qp_context::modify, qp_context::encode>
{
public:
	explicit Commands(Core &core) : CommonCommands(core) {}

	hw::mlx4::Status execute(Command &command);

private:
	struct Entry;
	static const Entry kTable[];

	static const Entry *find(hw::mlx4::Opcode opcode);
	// Returns the size of a mailbox whose contents depend on the command's modifiers.
	std::size_t input_size(const Entry &entry, const Command &command) const;
	std::size_t output_size(const Entry &entry, const Command &command) const;

	// commands_system.cpp
	Status query_fw(Command &command);
	Status query_dev_cap(Command &command);
	Status query_adapter(Command &command);
	Status mod_stat_cfg(Command &command);
	Status init_hca(Command &command);
	Status query_hca(Command &command);
	Status diag_rprt(Command &command);

	// commands_icm.cpp
	Status unmap_icm(Command &command);
	Status sw2hw_mpt(Command &command);
	Status hw2sw_mpt(Command &command);
	Status query_mpt(Command &command);
	Status write_mtt(Command &command);

	// commands_queues.cpp
	Status map_eq(Command &command);
	Status sw2hw_eq(Command &command);
	Status hw2sw_eq(Command &command);
	Status query_eq(Command &command);
	Status sw2hw_cq(Command &command);
	Status hw2sw_cq(Command &command);
	Status query_cq(Command &command);
	Status modify_cq(Command &command);
	Status sw2hw_srq(Command &command);

	// commands_qp.cpp
	Status rst2init_qp(Command &command);
	Status conf_special_qp(Command &command);

	// commands_port.cpp
	Status query_port(Command &command);
	Status init_port(Command &command);
	Status close_port(Command &command);
	Status set_port(Command &command);
	Status sense_port(Command &command);
	Status set_node(Command &command);
	Status mgid_hash(Command &command);
	Status write_mcg(Command &command);
	CardPort *port(std::uint32_t number) const;

	// Returns true if the context of object @slot is mapped in ICM.
	bool backed(const hw::mlx4::Field64 &base, std::uint64_t slot, std::size_t size) const;
};

} // namespace weft::mlx4
