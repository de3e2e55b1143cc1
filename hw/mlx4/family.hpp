// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Imports the types that mlx4 and mthca share (hw/mellanox_icm) into the driver of the ConnectX-2,
// and gives the namespace of its registers and structures a short name.
#pragma once
#include <hw/mlx4/commands.hpp>
#include <hw/mlx4/registers.hpp>
#include "../mellanox_icm/buddy.hpp"
#include "../mellanox_icm/command.hpp"
#include "../mellanox_icm/event_queues.hpp"
#include "../mellanox_icm/icm_table.hpp"
#include "../mellanox_icm/mailbox.hpp"
#include "../mellanox_icm/management.hpp"
#include "../mellanox_icm/mtt.hpp"
#include "../mellanox_icm/multicast.hpp"
#include "../mellanox_icm/number_allocator.hpp"
#include "../mellanox_icm/page_area.hpp"
#include "../mellanox_icm/port.hpp"
#include "../mellanox_icm/protection.hpp"

namespace mlx4
{

using namespace mellanox_icm;
namespace wire = ::hw::mlx4;

} // namespace mlx4
