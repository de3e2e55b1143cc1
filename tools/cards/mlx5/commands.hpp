// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the firmware commands of the ConnectX-5. Each command checks all its parameters before
// it changes anything.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cards/mlx5/command_queue.hpp"
#include "cards/mlx5/page_list.hpp"
#include "cards/mlx5/queue_pair.hpp"

namespace weft::mlx5
{

class Core;

class Commands
{
public:
	explicit Commands(Core &core) : core_(core) {}

	hw::mlx5::Status execute(Command &command);
	// See CommandQueue::Executor.
	static std::size_t whole_input(hw::mlx5::Opcode opcode);

private:
	using Status = hw::mlx5::Status;
	struct Entry;
	static const Entry kTable[];
	static const Entry kEnhancedIpoib[];

	// Creates a page list from the input at @offset.
	Status make_pages(const Command &command, std::size_t offset, const PageLayout &layout,
			  PageList &out);

	// commands_system.cpp
	Status nop(Command &command);
	Status enable_hca(Command &command);
	Status disable_hca(Command &command);
	Status init_hca(Command &command);
	Status teardown_hca(Command &command);
	Status query_issi(Command &command);
	Status set_issi(Command &command);
	Status query_pages(Command &command);
	Status manage_pages(Command &command);
	Status query_hca_cap(Command &command);
	Status set_hca_cap(Command &command);
	Status query_adapter(Command &command);
	Status alloc_number(Command &command);
	Status dealloc_number(Command &command);

	// commands_memory.cpp
	Status create_mkey(Command &command);
	Status query_mkey(Command &command);
	Status destroy_mkey(Command &command);

	// commands_queues.cpp
	Status create_eq(Command &command);
	Status destroy_eq(Command &command);
	Status query_eq(Command &command);
	Status create_cq(Command &command);
	Status destroy_cq(Command &command);
	Status query_cq(Command &command);
	Status modify_cq(Command &command);

	// commands_srq.cpp
	Status create_xrc_srq(Command &command);
	Status query_xrc_srq(Command &command);
	Status arm_xrc_srq(Command &command);
	Status create_rmp(Command &command);
	Status modify_rmp(Command &command);
	Status query_rmp(Command &command);
	Status destroy_srq(Command &command);

	// commands_qp.cpp
	Status create_qp(Command &command);
	Status destroy_qp(Command &command);
	Status rst2init_qp(Command &command);
	Status modify_qp(Command &command);
	Status to_err_qp(Command &command);
	Status to_rst_qp(Command &command);
	Status query_qp(Command &command);

	// commands_port.cpp
	Status mad_ifc(Command &command);
	Status access_register(Command &command);
	Status attach_to_mcg(Command &command);
	Status detach_from_mcg(Command &command);
	Status query_vport_context(Command &command);
	Status query_vport_gid(Command &command);
	Status query_vport_pkey(Command &command);

	// commands_raw.cpp
	Status create_rq(Command &command);
	Status modify_rq(Command &command);
	Status destroy_rq(Command &command);
	Status query_rq(Command &command);
	Status create_sq(Command &command);
	Status modify_sq(Command &command);
	Status destroy_sq(Command &command);
	Status query_sq(Command &command);

	// commands_interfaces.cpp
	Status create_tis(Command &command);
	Status destroy_tis(Command &command);
	Status create_tir(Command &command);
	Status modify_tir(Command &command);
	Status destroy_tir(Command &command);
	Status create_rqt(Command &command);
	Status modify_rqt(Command &command);
	Status destroy_rqt(Command &command);
	Status alloc_q_counter(Command &command);
	Status dealloc_q_counter(Command &command);
	Status query_q_counter(Command &command);
	Status query_vport_counter(Command &command);

	// commands_steering.cpp
	Status create_flow_table(Command &command);
	Status modify_flow_table(Command &command);
	Status destroy_flow_table(Command &command);
	Status set_flow_table_root(Command &command);
	Status create_flow_group(Command &command);
	Status destroy_flow_group(Command &command);
	Status set_flow_table_entry(Command &command);
	Status delete_flow_table_entry(Command &command);

	Core &core_;
};

} // namespace weft::mlx5
