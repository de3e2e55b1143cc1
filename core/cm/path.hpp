// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Conversions of paths between path records, CM messages and address vectors.
 */
#pragma once

#include "port.hpp"
#include "times.hpp"

namespace cm
{

/* A path through a local port. */
struct Route {
	u32 port;
	u16 sgid_index;
	u16 pkey_index;
	rdma_ah_attr attr;
	ib_gid dgid;
};

/*
 * Errors: ENOENT for a source GID or a P_Key that no port has; EINVAL for a path without
 * destination. Context: any.
 */
kern::Result<Route> find_route(ib_device &device, const sa_path_rec &path);

/* Converts a path for a REQ or LAP. ca_ack_delay: the delay of the local CA. */
ib::CmPath to_wire(const sa_path_rec &path, u8 ca_ack_delay);

/*
 * Seen from the receiver. The P_Key and the MTU, which the message lacks, are the connection's. A
 * path that leaves the subnet has no LIDs of use: then they and the SL are those by which the
 * message came (IBA 12.7.9 to 12.7.12).
 */
sa_path_rec from_wire(const ib::CmPath &path, u16 pkey, u8 mtu, const ib_wc &wc, u16 port_lid);

} // namespace cm
