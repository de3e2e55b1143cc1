// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the firmware commands of the InfiniHost III. Each command checks all its parameters
// before it changes anything.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hw/mthca/commands.hpp>

#include "cards/hca/port.hpp"
#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/common_commands.hpp"
#include "cards/mthca/qp_context.hpp"

namespace weft::mthca
{

class Core;

class Commands : private mellanox_icm::CommonCommands<Core, qp_context::modify, qp_context::encode>
{
public:
	explicit Commands(Core &core) : CommonCommands(core) {}

	hw::mthca::Status execute(Command &command);

private:
	struct Entry;
	static const Entry kTable[];

	std::size_t input_size(const Entry &entry, const Command &command) const;
	std::size_t output_size(const Entry &entry, const Command &command) const;

	// commands_system.cpp
	Status query_fw(Command &command);
	Status query_dev_lim(Command &command);
	Status query_adapter(Command &command);
	Status enable_lam(Command &command);
	Status init_hca(Command &command);
	Status query_hca(Command &command);

	// commands_memory.cpp
	Status unmap_icm(Command &command);
	Status sw2hw_mpt(Command &command);
	Status hw2sw_mpt(Command &command);

	// commands_queues.cpp
	Status map_eq(Command &command);
	Status sw2hw_eq(Command &command);
	Status hw2sw_eq(Command &command);
	Status sw2hw_cq(Command &command);
	Status hw2sw_cq(Command &command);
	Status query_cq(Command &command);
	Status resize_cq(Command &command);
	Status sw2hw_srq(Command &command);

	// commands_qp.cpp
	Status rst2init_qp(Command &command);
	Status conf_special_qp(Command &command);

	// commands_port.cpp
	Status init_ib(Command &command);
	Status close_ib(Command &command);
	Status set_ib(Command &command);
	Status mgid_hash(Command &command);
	Status write_mgm(Command &command);
};

} // namespace weft::mthca
