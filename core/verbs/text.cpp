// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Returns the names of events and completion statuses for messages, and converts encoded rates to
// numbers.
#include <rdma/ib_verbs.h>

namespace
{

template<unsigned int count>
const char *lookup(const char *const (&names)[count], unsigned int code, const char *unknown)
{
	return code < count && names[code] ? names[code] : unknown;
}

constexpr const char *event_names[] = {
	[IB_EVENT_CQ_ERR] = "CQ error",
	[IB_EVENT_QP_FATAL] = "QP fatal error",
	[IB_EVENT_QP_REQ_ERR] = "QP request error",
	[IB_EVENT_QP_ACCESS_ERR] = "QP access error",
	[IB_EVENT_COMM_EST] = "communication established",
	[IB_EVENT_SQ_DRAINED] = "send queue drained",
	[IB_EVENT_PATH_MIG] = "path migrated",
	[IB_EVENT_PATH_MIG_ERR] = "path migration error",
	[IB_EVENT_DEVICE_FATAL] = "device fatal error",
	[IB_EVENT_PORT_ACTIVE] = "port active",
	[IB_EVENT_PORT_ERR] = "port error",
	[IB_EVENT_LID_CHANGE] = "LID change",
	[IB_EVENT_PKEY_CHANGE] = "P_Key change",
	[IB_EVENT_SM_CHANGE] = "SM change",
	[IB_EVENT_SRQ_ERR] = "SRQ error",
	[IB_EVENT_SRQ_LIMIT_REACHED] = "SRQ limit reached",
	[IB_EVENT_QP_LAST_WQE_REACHED] = "last WQE reached",
	[IB_EVENT_CLIENT_REREGISTER] = "client reregister",
	[IB_EVENT_GID_CHANGE] = "GID change",
	[IB_EVENT_WQ_FATAL] = "WQ fatal error",
};

constexpr const char *status_names[] = {
	[IB_WC_SUCCESS] = "success",
	[IB_WC_LOC_LEN_ERR] = "local length error",
	[IB_WC_LOC_QP_OP_ERR] = "local QP operation error",
	[IB_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
	[IB_WC_LOC_PROT_ERR] = "local protection error",
	[IB_WC_WR_FLUSH_ERR] = "request flushed",
	[IB_WC_MW_BIND_ERR] = "memory window bind error",
	[IB_WC_BAD_RESP_ERR] = "bad response",
	[IB_WC_LOC_ACCESS_ERR] = "local access error",
	[IB_WC_REM_INV_REQ_ERR] = "remote invalid request",
	[IB_WC_REM_ACCESS_ERR] = "remote access error",
	[IB_WC_REM_OP_ERR] = "remote operation error",
	[IB_WC_RETRY_EXC_ERR] = "retries exceeded",
	[IB_WC_RNR_RETRY_EXC_ERR] = "receiver-not-ready retries exceeded",
	[IB_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
	[IB_WC_REM_INV_RD_REQ_ERR] = "remote invalid RD request",
	[IB_WC_REM_ABORT_ERR] = "aborted by the remote",
	[IB_WC_INV_EECN_ERR] = "invalid EE context number",
	[IB_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
	[IB_WC_FATAL_ERR] = "fatal error",
	[IB_WC_RESP_TIMEOUT_ERR] = "no response in time",
	[IB_WC_GENERAL_ERR] = "general error",
};

/* Multiples of 2.5 Gbit/s by rate code; 0 for rates that are not multiples. */
constexpr short rate_multiples[] = {
	[IB_RATE_PORT_CURRENT] = 0, [1] = 0,
	[IB_RATE_2_5_GBPS] = 1,     [IB_RATE_10_GBPS] = 4,
	[IB_RATE_30_GBPS] = 12,     [IB_RATE_5_GBPS] = 2,
	[IB_RATE_20_GBPS] = 8,      [IB_RATE_40_GBPS] = 16,
	[IB_RATE_60_GBPS] = 24,     [IB_RATE_80_GBPS] = 32,
	[IB_RATE_120_GBPS] = 48,    [IB_RATE_14_GBPS] = 6,
	[IB_RATE_56_GBPS] = 22,     [IB_RATE_112_GBPS] = 45,
	[IB_RATE_168_GBPS] = 67,    [IB_RATE_25_GBPS] = 10,
	[IB_RATE_100_GBPS] = 40,    [IB_RATE_200_GBPS] = 80,
	[IB_RATE_300_GBPS] = 120,   [IB_RATE_28_GBPS] = 11,
	[IB_RATE_50_GBPS] = 20,     [IB_RATE_400_GBPS] = 160,
	[IB_RATE_600_GBPS] = 240,
};

/*
 * The FDR and EDR lane rates are no multiples of 2.5 Gbit/s: their signalling rates are 14.0625 and
 * 25.78125 Gbit/s (IBA 2.0, 7.9).
 */
constexpr int rate_mbps(ib_rate rate)
{
	switch (rate) {
	case IB_RATE_14_GBPS:
		return 14062;
	case IB_RATE_56_GBPS:
		return 56250;
	case IB_RATE_112_GBPS:
		return 112500;
	case IB_RATE_168_GBPS:
		return 168750;
	case IB_RATE_25_GBPS:
		return 25781;
	case IB_RATE_100_GBPS:
		return 103125;
	case IB_RATE_200_GBPS:
		return 206250;
	case IB_RATE_300_GBPS:
		return 309375;
	case IB_RATE_28_GBPS:
		return 28125;
	case IB_RATE_50_GBPS:
		return 53125;
	case IB_RATE_400_GBPS:
		return 425000;
	case IB_RATE_600_GBPS:
		return 637500;
	default:
		return 0;
	}
}

} // namespace

extern "C" {

const char *ib_event_msg(enum ib_event_type event)
{
	return lookup(event_names, event, "unknown event");
}

const char *ib_wc_status_msg(enum ib_wc_status status)
{
	return lookup(status_names, status, "unknown status");
}

int ib_rate_to_mult(enum ib_rate rate)
{
	if (static_cast<unsigned int>(rate) >= sizeof(rate_multiples) / sizeof(rate_multiples[0]) ||
	    rate_multiples[rate] == 0)
		return -1;
	return rate_multiples[rate];
}

enum ib_rate mult_to_ib_rate(int mult)
{
	for (int code = IB_RATE_2_5_GBPS; code <= IB_RATE_600_GBPS; code++)
		if (rate_multiples[code] == mult)
			return static_cast<ib_rate>(code);
	return IB_RATE_PORT_CURRENT;
}

int ib_rate_to_mbps(enum ib_rate rate)
{
	const int mult = ib_rate_to_mult(rate);

	if (mult < 0)
		return -1;
	return rate_mbps(rate) ? rate_mbps(rate) : mult * 2500;
}
}
