// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Functions that the parts of the engine share. All are called under Fabric::lock.
#pragma once
#include "device.hpp"

namespace soft
{

inline SoftDevice &device_at(ib_list_head *links)
{
	return *reinterpret_cast<SoftDevice *>(reinterpret_cast<char *>(links) -
					       __builtin_offsetof(SoftDevice, fabric_links));
}

/* Returns true with this probability, in thousandths. */
bool chance(SoftDevice &device, unsigned int per_thousand);

/* The active port that has a LID; nullptr if none has. */
SoftDevice *find_port(u32 lid, u32 &port_num);

/* A buffer of the SRQ, or without one of the QP. */
bool take_recv(QpState &qp, ib_srq *srq, RecvEntry &entry);
/* Completes a receive; wr_id and qp are filled in here. */
void complete_recv(QpState &qp, const RecvEntry &entry, ib_wc wc, bool solicited);
void fail_recv(QpState &qp, const RecvEntry &entry, ib_wc_status status);

} // namespace soft
