// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The family's way to describe big-endian structures, under this card's name.
#pragma once

#include <hw/mellanox/field.hpp>

namespace hw::connectx
{

using mellanox::Field;
using mellanox::Field64;
using mellanox::Storage;
using mellanox::load_be32;
using mellanox::load_be64;
using mellanox::store_be32;
using mellanox::store_be64;

} // namespace hw::connectx
