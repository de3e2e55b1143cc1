// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// This card speaks of what every channel adapter and every card of its family has by short names.
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
