// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Makes the names that all channel adapters share (hca), and those that mlx4 and mthca share
// (mellanox_icm), usable without a prefix in the code of the ConnectX-2.
#pragma once

namespace weft::hca
{
namespace transport
{
}
} // namespace weft::hca

namespace weft::mellanox_icm
{
using namespace hca;
}

namespace weft::mlx4
{
using namespace hca;
using namespace mellanox_icm;

namespace transport
{
using namespace hca::transport;
}
} // namespace weft::mlx4
