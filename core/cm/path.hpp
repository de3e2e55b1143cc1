// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Converts paths between path records, CM messages and address vectors. */
#pragma once

#include "port.hpp"
#include "times.hpp"

namespace cm
{

/* The local port and the GID index of a path. */
struct Route {
	u32 port;
	u16 sgid_index;
	u16 pkey_index;
	rdma_ah_attr attr;
	ib_gid dgid;
};

/*
 * Errors: ENOENT if no port has the source GID or the P_Key; EINVAL for a path without a
 * destination. Context: any.
 */
kern::Result<Route> find_route(ib_device &device, const sa_path_rec &path);

/* Converts a path for a REQ or LAP. @ca_ack_delay: the ACK delay of the local CA. */
ib::CmPath to_wire(const sa_path_rec &path, u8 ca_ack_delay);

/*
 * Converts a received path to the receiver's view. The message contains no P_Key and no MTU for the
 * path, so they are those of the connection. The LIDs of a path that leaves the subnet are
 * unusable, so the LIDs and the SL of the received message are used instead (IBA 12.7.9 to
 * 12.7.12).
 */
sa_path_rec from_wire(const ib::CmPath &path, u16 pkey, u8 mtu, const ib_wc &wc, u16 port_lid);

} // namespace cm
