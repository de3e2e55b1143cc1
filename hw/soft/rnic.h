/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The software device as an RNIC (rdma/iwarp.h): without GIDs, P_Keys and address handles.
 * Supplements soft.h; valid in C and C++.
 */
#pragma once
#include <rdma/iwarp.h>
#include "soft.h"

RDMA_C_BEGIN

/* Like soft_create(), without options for a subnet: switch, LIDs, MADs. */
struct ib_device *soft_create_rnic(const struct soft_options *options);

/*
 * Creates a stream between two QPs of RNICs, as their connection managers would. Without a stream,
 * a QP cannot move to RTS. The stream ends when one QP leaves RTS or is destroyed; if the other one
 * is in RTS, it then moves to the error state. Errors: EISCONN, EINVAL for QPs of other devices.
 * Context: process.
 */
int soft_stream(struct ib_qp *a, struct ib_qp *b);

RDMA_C_END
