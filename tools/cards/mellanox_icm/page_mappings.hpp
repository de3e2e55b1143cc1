// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses the mailboxes of MAP_FA, MAP_ICM and MAP_ICM_AUX, by which a driver maps memory for the
// card.
#pragma once

#include <cstdint>
#include <span>

#include <hw/mlx4/commands.hpp>

namespace weft::mellanox_icm
{

class IcmMap;
class MemoryTable;

// Adds the number of mapped pages to @pages. Drivers must lend memory for the firmware and
// auxiliary memory. It is counted, but never used.
hw::mlx4::Status count_pages(std::span<const std::uint8_t> mailbox, std::uint64_t &pages);

// Maps the pages into ICM. If a mapping is invalid, none is added. If there are too many pieces,
// the earlier ones stay. A guest can only lend memory that it has, so its memory limits the mapped
// memory.
hw::mlx4::Status map_icm(std::span<const std::uint8_t> mailbox, IcmMap &icm, MemoryTable &memory);

} // namespace weft::mellanox_icm
