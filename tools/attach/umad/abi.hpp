// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the functions and types of libibumad, which this library defines and exports. All other
// symbols are hidden.
#pragma once

#pragma GCC visibility push(default)
#include <infiniband/umad.h>
#include <infiniband/umad_sa.h>
#include <infiniband/umad_sm.h>
#include <infiniband/umad_str.h>
#include <infiniband/umad_types.h>
#pragma GCC visibility pop
