// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Tests the mlx4 driver on the emulated card, both in one process with a simulated kernel
// (weft-explore(1)).
#include <kern/abi/explore.h>

static constexpr kern_explore_card explored_card = KERN_EXPLORE_MLX4;
#include "../../../mellanox_icm/tests/explore/cases.hpp"

KUNIT_SUITE(explore_mlx4, EXPLORED_CASES);
