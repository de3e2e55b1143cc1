/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The software device as an RNIC (rdma/iwarp.h): without GIDs, P_Keys and address handles.
 * Supplements soft.h; valid in C and C++.
 */
#pragma once
#include <rdma/iwarp.h>
#include "soft.h"

RDMA_C_BEGIN

/* As soft_create(), with options that do not speak of a subnet: a switch, LIDs, MADs. */
struct ib_device *soft_create_rnic(const struct soft_options *options);

/*
 * A stream between two QPs of RNICs, as their connection managers would have made by connecting:
 * without one a QP does not get to RTS. It ends when one of them leaves RTS, or is destroyed; the
 * other, if it is in RTS, is then in error. Errors: EISCONN, EINVAL for QPs of other devices.
 * Context: process.
 */
int soft_stream(struct ib_qp *a, struct ib_qp *b);

RDMA_C_END
