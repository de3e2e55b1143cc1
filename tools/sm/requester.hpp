// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The port that sent a request to the subnet administration, and the ports that it may make
 * requests for (IBA 15.4.1.2).
 */
#pragma once

#include <ib/types.hpp>

namespace weft::sm
{

struct Requester {
	/* Of the port whose LID the request came from; 0 if no port has it. */
	ib::Guid port_guid = 0;
	/* The request holds the manager's SM_Key. */
	bool trusted = false;
	/* The LID that the request came from, for the log. */
	ib::Lid lid = 0;

	bool is(ib::Guid guid) const { return port_guid != 0 && port_guid == guid; }
	/*
	 * What a port has asked for (memberships, services) is its own matter. The specification
	 * lets any port of the same partition be a proxy; here it takes the SM_Key, for in the
	 * default partition everybody is.
	 */
	bool may_act_for(ib::Guid guid) const { return trusted || is(guid); }
};

} // namespace weft::sm
