// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Identifies the port that sent a request to subnet administration, and the ports for which it may
 * make requests (IBA 15.4.1.2).
 */
#pragma once

#include <ib/types.hpp>

namespace weft::sm
{

struct Requester {
	/* GUID of the port with the source LID of the request; 0 if no port has it. */
	ib::Guid port_guid = 0;
	/* True if the request contains the manager's SM_Key. */
	bool trusted = false;
	/* The source LID of the request, for the log. */
	ib::Lid lid = 0;

	bool is(ib::Guid guid) const { return port_guid != 0 && port_guid == guid; }
	/*
	 * Only the port itself may change what it has requested (memberships, services). The
	 * specification lets any port of the same partition act as a proxy; here a proxy needs the
	 * SM_Key, because all ports are in the default partition.
	 */
	bool may_act_for(ib::Guid guid) const { return trusted || is(guid); }
};

} // namespace weft::sm
