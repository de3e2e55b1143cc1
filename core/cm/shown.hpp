// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Declares the counters of the communication manager, which sysfs shows in the directory of each
 * port.
 */
#pragma once

#include <rdma/ib_port_counters.h>

namespace cm
{

/* The argument of ib_set_port_counters(). */
extern const ib_port_counters shown_counters;

} // namespace cm
