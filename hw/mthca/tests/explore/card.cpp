// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs the mthca driver on the emulated card in weft-explore.
#include <kern/abi/explore.h>

static constexpr kern_explore_card explored_card = KERN_EXPLORE_MTHCA;
#include "../../../mellanox_icm/tests/explore/cases.hpp"

KUNIT_SUITE(explore_mthca, EXPLORED_CASES);
