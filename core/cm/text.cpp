// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements ibcm_reject_msg(), which returns the text for a reject reason.
#include <rdma/ib_cm.h>

extern "C" const char *ibcm_reject_msg(int reason)
{
	static constexpr const char *const texts[] = {
		nullptr,
		"no QP available",
		"no EE context available",
		"no resources available",
		"timed out",
		"unsupported request",
		"invalid communication id",
		"invalid communication instance",
		"no listener for this service ID",
		"invalid transport service type",
		"stale connection",
		"RDC does not exist",
		"primary remote port GID rejected",
		"primary remote port LID rejected",
		"invalid primary SL",
		"invalid primary traffic class",
		"invalid primary hop limit",
		"invalid primary packet rate",
		"alternate remote port GID rejected",
		"alternate remote port LID rejected",
		"invalid alternate SL",
		"invalid alternate traffic class",
		"invalid alternate hop limit",
		"invalid alternate packet rate",
		"redirected to another port and CM",
		"redirected to another port",
		"invalid path MTU",
		"insufficient responder resources",
		"refused by the consumer",
		"invalid RNR retry count",
		"local communication id in use already",
		"invalid class version",
		"invalid primary flow label",
		"invalid alternate flow label",
		nullptr,
		"vendor option not supported",
	};
	constexpr int count = sizeof(texts) / sizeof(texts[0]);
	static_assert(count == IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED + 1);

	return reason > 0 && reason < count && texts[reason] ? texts[reason] : "unknown reason";
}
