// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the functions and types of libibumad. The library that replaces libibumad in attached
// programs defines and exports these functions, and hides all its other symbols.
#pragma once

#pragma GCC visibility push(default)
#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sm.h>
#include <infiniband/umad_str.h>
#include <infiniband/umad_types.h>
#pragma GCC visibility pop
