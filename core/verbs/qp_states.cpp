// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the QP state machine: the permitted transitions, with the required and optional
 * attributes of each, by transport and QP type. The lists for InfiniBand follow IBA 11.2.5.2, table
 * "QP State Transition Properties". Each type has a short list; transitions that are not listed are
 * rejected. Transitions to RESET and ERR are permitted from every state, without attributes, and
 * are not listed.
 *
 * The list for iWARP follows RDMA Protocol Verbs Specification 1.0, 6.2, with the names of
 * InfiniBand's states. RESET, INIT and RTR correspond to Idle, a QP without a connection; iWARP QPs
 * have all three because consumers of both protocols pass through them. RTS corresponds to RTS, SQD
 * to Closing, and SQE to Terminate. A terminated connection cannot be resumed, and an existing
 * connection must be closed first, so there is no transition from RTS or SQE to RESET.
 */
#include "protocol.hpp"

using verbs::Transport;

namespace
{

struct Transition {
	ib_qp_state from;
	ib_qp_state to;
	int required;
	int optional;
};

/* Attributes that must be set together. */
constexpr int migration = IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE;
constexpr int peer = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
constexpr int requester =
	IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
constexpr int responder = IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;

constexpr Transition management[] = {
	{IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_QKEY, 0},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_INIT, IB_QPS_RTR, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_RTR, IB_QPS_RTS, IB_QP_SQ_PSN, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{IB_QPS_SQD, IB_QPS_SQD, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_SQD, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_SQE, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
};

constexpr Transition datagram[] = {
	{IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY, 0},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY},
	{IB_QPS_INIT, IB_QPS_RTR, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_RTR, IB_QPS_RTS, IB_QP_SQ_PSN, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{IB_QPS_SQD, IB_QPS_SQD, 0, IB_QP_PKEY_INDEX | IB_QP_QKEY},
	{IB_QPS_SQD, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
	{IB_QPS_SQE, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_QKEY},
};

constexpr Transition unreliable[] = {
	{IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS},
	{IB_QPS_INIT, IB_QPS_RTR, peer, IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_RTR, IB_QPS_RTS, IB_QP_SQ_PSN, IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS},
	{IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS},
	{IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{IB_QPS_SQD, IB_QPS_SQD, 0, IB_QP_AV | migration | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_SQD, IB_QPS_RTS, 0, IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS},
	{IB_QPS_SQE, IB_QPS_RTS, 0, IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS},
};

constexpr Transition reliable[] = {
	{IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS},
	{IB_QPS_INIT, IB_QPS_RTR, peer | responder,
	 IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_RTR, IB_QPS_RTS, requester | IB_QP_SQ_PSN,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER},
	{IB_QPS_RTS, IB_QPS_RTS, 0,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER},
	{IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{IB_QPS_SQD, IB_QPS_SQD, 0,
	 IB_QP_PORT | IB_QP_AV | requester | responder | migration | IB_QP_ACCESS_FLAGS |
		 IB_QP_PKEY_INDEX},
	{IB_QPS_SQD, IB_QPS_RTS, 0,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER},
};

/*
 * An XRC initiator has the attributes of an RC QP's send side, and an XRC target those of its
 * receive side.
 */
constexpr Transition xrc_initiator[] = {
	{IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS},
	{IB_QPS_INIT, IB_QPS_RTR, peer, IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_RTR, IB_QPS_RTS, requester | IB_QP_SQ_PSN,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS},
	{IB_QPS_RTS, IB_QPS_RTS, 0, IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS},
	{IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{IB_QPS_SQD, IB_QPS_SQD, 0,
	 IB_QP_PORT | IB_QP_AV | requester | migration | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_SQD, IB_QPS_RTS, 0, IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS},
};

constexpr Transition xrc_target[] = {
	{IB_QPS_RESET, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS, 0},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS},
	{IB_QPS_INIT, IB_QPS_RTR, peer | responder,
	 IB_QP_ALT_PATH | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX},
	{IB_QPS_RTR, IB_QPS_RTS, IB_QP_TIMEOUT | IB_QP_SQ_PSN,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER},
	{IB_QPS_RTS, IB_QPS_RTS, 0,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER},
	{IB_QPS_RTS, IB_QPS_SQD, 0, IB_QP_EN_SQD_ASYNC_NOTIFY},
	{IB_QPS_SQD, IB_QPS_SQD, 0,
	 IB_QP_PORT | IB_QP_AV | IB_QP_TIMEOUT | responder | migration | IB_QP_ACCESS_FLAGS |
		 IB_QP_PKEY_INDEX},
	{IB_QPS_SQD, IB_QPS_RTS, 0,
	 IB_QP_CUR_STATE | migration | IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER},
};

/*
 * The peer, its address and the sequence numbers are properties of the TCP connection. The number
 * of outstanding reads is negotiated when it is established.
 */
constexpr int stream = IB_QP_ACCESS_FLAGS | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC;

constexpr Transition iwarp[] = {
	{IB_QPS_RESET, IB_QPS_INIT, 0, IB_QP_PORT | stream},
	{IB_QPS_INIT, IB_QPS_INIT, 0, IB_QP_PORT | stream},
	{IB_QPS_INIT, IB_QPS_RTR, 0, stream},
	{IB_QPS_INIT, IB_QPS_RTS, 0, stream},
	{IB_QPS_RTR, IB_QPS_RTS, 0, stream},
	{IB_QPS_RTS, IB_QPS_RTS, 0, stream},
	{IB_QPS_RTS, IB_QPS_SQD, 0, 0},
	{IB_QPS_SQD, IB_QPS_SQD, 0, 0},
	{IB_QPS_RTS, IB_QPS_SQE, 0, 0},
};

struct Transitions {
	const Transition *first;
	unsigned int count;
};

template<unsigned int count>
constexpr Transitions all_of(const Transition (&list)[count])
{
	return {list, count};
}

constexpr Transitions transitions_of(Transport transport, ib_qp_type type)
{
	if (transport == Transport::iwarp)
		return type == IB_QPT_RC ? all_of(iwarp) : Transitions{nullptr, 0};
	switch (type) {
	case IB_QPT_SMI:
	case IB_QPT_GSI:
		return all_of(management);
	case IB_QPT_UD:
		return all_of(datagram);
	case IB_QPT_UC:
		return all_of(unreliable);
	case IB_QPT_RC:
		return all_of(reliable);
	case IB_QPT_XRC_INI:
		return all_of(xrc_initiator);
	case IB_QPT_XRC_TGT:
		return all_of(xrc_target);
	default:
		return {nullptr, 0};
	}
}

constexpr bool known(ib_qp_state state)
{
	return state >= IB_QPS_RESET && state <= IB_QPS_ERR;
}

constexpr bool is_ok(Transport transport, ib_qp_state from, ib_qp_state to, ib_qp_type type,
		     int mask)
{
	const Transitions transitions = transitions_of(transport, type);
	const int attributes = mask & ~IB_QP_STATE;

	if (!known(from) || !known(to) || transitions.count == 0)
		return false;
	if (transport == Transport::iwarp && to == IB_QPS_RESET &&
	    (from == IB_QPS_RTS || from == IB_QPS_SQE))
		return false;
	if (to == IB_QPS_RESET || to == IB_QPS_ERR)
		return (attributes & ~IB_QP_CUR_STATE) == 0;
	for (unsigned int i = 0; i < transitions.count; i++) {
		const Transition &transition = transitions.first[i];
		if (transition.from != from || transition.to != to)
			continue;
		return (transition.required & ~attributes) == 0 &&
		       (attributes & ~(transition.required | transition.optional)) == 0;
	}
	return false;
}

constexpr auto ib = Transport::infiniband;
static_assert(is_ok(ib, IB_QPS_RESET, IB_QPS_INIT, IB_QPT_UD,
		    IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY));
static_assert(!is_ok(ib, IB_QPS_RESET, IB_QPS_INIT, IB_QPT_UD,
		     IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT));
static_assert(!is_ok(ib, IB_QPS_RESET, IB_QPS_RTR, IB_QPT_RC, IB_QP_STATE | peer | responder));
static_assert(is_ok(ib, IB_QPS_RTS, IB_QPS_ERR, IB_QPT_RC, IB_QP_STATE));
static_assert(!is_ok(ib, IB_QPS_SQE, IB_QPS_RTS, IB_QPT_RC, IB_QP_STATE));
static_assert(is_ok(Transport::iwarp, IB_QPS_INIT, IB_QPS_RTS, IB_QPT_RC, IB_QP_STATE));
static_assert(!is_ok(Transport::iwarp, IB_QPS_RTS, IB_QPS_RESET, IB_QPT_RC, IB_QP_STATE));

} // namespace

bool verbs::transition_is_ok(Transport transport, ib_qp_state from, ib_qp_state to, ib_qp_type type,
			     int mask)
{
	return is_ok(transport, from, to, type, mask);
}

extern "C" bool ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
				   enum ib_qp_type type, enum ib_qp_attr_mask mask)
{
	return is_ok(Transport::infiniband, cur_state, next_state, type, mask);
}
