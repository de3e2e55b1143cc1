// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Validates received messages. Other code reads only messages that have passed this check. The same
 * source is also compiled into a user-space fuzzer (tools/tests/cm/fuzz).
 */
#pragma once

#include <ib/cm.hpp>

namespace cm
{

enum class Fault : std::uint8_t {
	none,
	not_ours,  /* another class, version or method, or an attribute that is not a CM message */
	malformed, /* breaks a rule of the message: dropped */
	transport_type, /* REQ for an unsupported transport: rejected with reason 9 */
	path_mtu,       /* REQ with an undefined MTU: rejected with reason 26 */
};

/*
 * Checks one MAD. If it returns no fault, all lengths fit into their fields, mandatory IDs are not
 * 0, and enumerations have values that the specification defines. Context: any.
 */
Fault check(const ib::Mad &mad);

} // namespace cm
