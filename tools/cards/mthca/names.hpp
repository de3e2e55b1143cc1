// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Imports the names common to all channel adapters and to this card's family, without a prefix.
#pragma once

namespace weft::hca
{
}

namespace weft::mellanox_icm
{
using namespace hca;
}

namespace weft::mthca
{
using namespace hca;
using namespace mellanox_icm;
} // namespace weft::mthca
