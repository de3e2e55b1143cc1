// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "message.hpp"

#include <kern/errno.h>

namespace amso1100
{

int errno_of(wire::Status status)
{
	using enum wire::Status;
	switch (status) {
	case ok:
		return 0;
	case insufficient_resources:
	case zero_read_resources:
		return -ENOMEM;
	case in_use:
	case qp_in_use:
	case stag_in_use:
	case outstanding_wrs:
		return -EBUSY;
	case not_implemented:
		return -EOPNOTSUPP;
	case invalid_qp_state:
		return -ENOTCONN;
	case address_in_use:
		return -EADDRINUSE;
	case address_not_available:
		return -EADDRNOTAVAIL;
	case network_unreachable:
		return -ENETUNREACH;
	case connection_reset:
		return -ECONNRESET;
	case connection_timed_out:
		return -ETIMEDOUT;
	case connection_refused:
		return -ECONNREFUSED;
	case host_unreachable:
		return -EHOSTUNREACH;
	default:
		return -EINVAL;
	}
}

} // namespace amso1100
