// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Declares the functions that engine.cpp, transport.cpp and datagram.cpp share. The caller of each
// function holds Fabric::lock.
#pragma once
#include "device.hpp"

namespace soft
{

inline SoftDevice &device_at(ib_list_head *links)
{
	return *reinterpret_cast<SoftDevice *>(reinterpret_cast<char *>(links) -
					       __builtin_offsetof(SoftDevice, fabric_links));
}

/* Returns true with a probability of `per_thousand` / 1000. */
bool chance(SoftDevice &device, unsigned int per_thousand);

/* Returns the device that has the active port with this LID, or nullptr; sets `port_num`. */
SoftDevice *find_port(u32 lid, u32 &port_num);

/*
 * Takes a receive buffer from the SRQ, or from the QP without an SRQ. Returns false if there is
 * none. Dispatches IB_EVENT_SRQ_LIMIT_REACHED if too few are left.
 */
bool take_recv(QpState &qp, ib_srq *srq, RecvEntry &entry);
/* Completes a receive. Sets wr_id and qp in the completion. */
void complete_recv(QpState &qp, const RecvEntry &entry, ib_wc wc, bool solicited);
void fail_recv(QpState &qp, const RecvEntry &entry, ib_wc_status status);

} // namespace soft
