/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Creates the software device as an RNIC (rdma/iwarp.h), which has no GIDs, no P_Keys and no
 * address handles. This header supplements soft.h, and is valid in C and C++.
 */
#pragma once
#include <rdma/iwarp.h>
#include "soft.h"

RDMA_C_BEGIN

/*
 * Like soft_create(). EINVAL for the options that only InfiniBand has: `is_switch`, `lid`, `lacks`,
 * `process_mad`.
 */
struct ib_device *soft_create_rnic(const struct soft_options *options);

/*
 * Creates a stream between two QPs of RNICs, as their connection managers would. A QP can move to
 * RTS only if it has a stream. The stream ends when one of its QPs leaves RTS or is destroyed. If
 * the other QP is in RTS, it then moves to the error state. Errors: EISCONN if a QP has a stream;
 * EINVAL for QPs of other devices. Context: process.
 */
int soft_stream(struct ib_qp *a, struct ib_qp *b);

RDMA_C_END
