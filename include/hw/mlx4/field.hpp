// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Imports the bit fields of big-endian structures (hw/mellanox_icm/field.hpp) for this card.
#pragma once

#include <hw/mellanox_icm/field.hpp>

namespace hw::mlx4
{

using mellanox_icm::Field;
using mellanox_icm::Field64;
using mellanox_icm::Storage;
using mellanox_icm::load_be32;
using mellanox_icm::load_be64;
using mellanox_icm::store_be32;
using mellanox_icm::store_be64;

} // namespace hw::mlx4
