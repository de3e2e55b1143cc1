// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Imports the names common to all channel adapters, and those of the faults that all cards have,
// without a prefix.
#pragma once

namespace weft::hca
{
}

namespace weft::mellanox_icm
{
enum class Fault : unsigned;
class Faults;
} // namespace weft::mellanox_icm

namespace weft::mlx5
{
using namespace hca;
using mellanox_icm::Fault;
using mellanox_icm::Faults;
}
