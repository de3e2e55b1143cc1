// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// This card uses the names of what every channel adapter has without a prefix.
#pragma once

namespace weft::hca
{
}

namespace weft::mlx5
{
using namespace hca;
}
