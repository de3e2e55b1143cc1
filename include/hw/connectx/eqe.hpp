// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Event queue entries: those of the family. (Documentation/connectx.rst, "EQ and EQE")
 */
#pragma once

#include <hw/mellanox/eqe.hpp>

namespace hw::connectx
{

using mellanox::Eqe;
using mellanox::EventType;
namespace cq_error_syndrome = mellanox::cq_error_syndrome;
namespace port_change_subtype = mellanox::port_change_subtype;
namespace port_info_changed = mellanox::port_info_changed;
namespace port_management_subtype = mellanox::port_management_subtype;

} // namespace hw::connectx
