// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Makes the names that all channel adapters share (hca), and those of fault injection
// (mellanox_icm), usable without a prefix in the code of the ConnectX-5.
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
