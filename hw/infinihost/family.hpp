// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// What this card has of its family (hw/mellanox), and by which names the driver speaks of the
// card's registers and structures.
#pragma once
#include <hw/infinihost/commands.hpp>
#include <hw/infinihost/registers.hpp>
#include "../mellanox/command.hpp"
#include "../mellanox/event_queues.hpp"
#include "../mellanox/icm_table.hpp"
#include "../mellanox/mailbox.hpp"
#include "../mellanox/management.hpp"
#include "../mellanox/mtt.hpp"
#include "../mellanox/multicast.hpp"
#include "../mellanox/number_allocator.hpp"
#include "../mellanox/page_area.hpp"
#include "../mellanox/port.hpp"
#include "../mellanox/protection.hpp"

namespace infinihost
{

using namespace mellanox;
namespace wire = ::hw::infinihost;

} // namespace infinihost
