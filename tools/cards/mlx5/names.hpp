// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Imports the names common to all channel adapters, without a prefix.
#pragma once

namespace weft::hca
{
}

namespace weft::mlx5
{
using namespace hca;
}
