// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Imports event queue entries, which are the same as those of the InfiniHost III
 * (hw/mellanox_icm/eqe.hpp).
 */
#pragma once

#include <hw/mellanox_icm/eqe.hpp>

namespace hw::mlx4
{

using mellanox_icm::Eqe;
using mellanox_icm::EventType;
namespace cq_error_syndrome = mellanox_icm::cq_error_syndrome;
namespace port_change_subtype = mellanox_icm::port_change_subtype;
namespace port_info_changed = mellanox_icm::port_info_changed;
namespace port_management_subtype = mellanox_icm::port_management_subtype;

} // namespace hw::mlx4
