// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Memory that a driver maps for the card: the mailboxes of MAP_FA, MAP_ICM and MAP_ICM_AUX.
#pragma once

#include <cstdint>
#include <span>

#include <hw/mlx4/commands.hpp>

namespace weft::mellanox_icm
{

class IcmMap;
class MemoryTable;

// Adds the pages of all mappings to @pages. The firmware's own memory and its auxiliary memory are
// counted, as software expects to lend them, and never used.
hw::mlx4::Status count_pages(std::span<const std::uint8_t> mailbox, std::uint64_t &pages);

// Maps them into ICM, all or nothing, but for running out of pieces. A machine can lend what it
// has: whatever is backed by ICM is bounded by its memory.
hw::mlx4::Status map_icm(std::span<const std::uint8_t> mailbox, IcmMap &icm, MemoryTable &memory);

} // namespace weft::mellanox_icm
