/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Contains code that active and passive connections share: the private data of REQ and REP, and the
 * QP's transitions with the attributes that the CM provides. The functions need process context.
 */
#pragma once

#include "active.hpp"
#include "wire.hpp"

#include <kern/result.hpp>

namespace ipoib
{

constexpr u32 psn_mask = 0xff'ffff;
/*
 * RNR NAK timer: how long a peer waits before it retries while there is no buffer. 0.64 ms (IBA
 * 9.7.5.2.8).
 */
constexpr u8 min_rnr_timer = 12;
/*
 * Upper limits for values that a peer requests. The RNR retries must be finite, so 7 is not
 * allowed, and the ACK timeout is at most 4 s (IBA 9.7.6.1.3). Unacknowledged packets occupy
 * requests that packets to other peers could use.
 */
constexpr u8 rnr_retry_max = 6, ack_timeout_max = 20;

template<class T>
kern::Result<T *> own(T *object)
{
	if (rdma::is_err(object))
		return kern::Error{rdma::ptr_err(object)};
	return object;
}

/* Returns the private data to send. leaves_checksums: see ConnectionData. */
inline ConnectionData connection_data(const ConnectionResources &resources, bool leaves_checksums)
{
	return {.qpn = resources.qpn,
		.receive_bytes = connected_bytes,
		.extension = leaves_checksums ? ConnectionData::leaves_checksums : 0u};
}

/* Contents of a peer's private data. */
struct PeerData {
	u32 receive_bytes; /* maximum size of a message that it receives */
	bool leaves_checksums;
};

/*
 * Parses a peer's private data. Returns EINVAL if no interface can have sent it: the QP number is
 * 0, 1 or the multicast number, or the receive size is smaller than the minimum MTU of IPv4 (68
 * bytes).
 */
inline kern::Result<PeerData> peer_data(const ib_cm_event &event)
{
	constexpr u32 least = 68 + sizeof(Header);
	ConnectionData data{};
	if (event.private_data_len < ConnectionData::least_bytes)
		return kern::Error{-EINVAL};
	__builtin_memcpy(&data, event.private_data,
			 event.private_data_len < sizeof(data) ? event.private_data_len
							       : sizeof(data));
	/* Bits above the QP number are reserved (RFC 4755 section 3.5). */
	const u32 qpn = data.qpn.value() & psn_mask;
	if (qpn <= 1 || qpn >= ib::qpn_multicast || data.receive_bytes.value() < least)
		return kern::Error{-EINVAL};
	return PeerData{.receive_bytes = data.receive_bytes.value(),
			.leaves_checksums =
				data.extension.value() == ConnectionData::leaves_checksums};
	/* Moves a QP to INIT, with the attributes of its interface. */
}

inline kern::Result<> to_init(ib_qp &qp, const ConnectionResources &resources)
{
	ib_qp_attr attr{};
	attr.qp_state = IB_QPS_INIT;
	attr.pkey_index = resources.pkey_index;
	attr.port_num = resources.port_num;
	return kern::check(ib_modify_qp(
		&qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS));
	/* Moves a QP to RTR, with the attributes that the CM has negotiated. */
}

inline kern::Result<> to_rtr(ib_qp &qp, ib_cm_id &id)
{
	ib_qp_attr attr{};
	int mask;
	attr.qp_state = IB_QPS_RTR;
	KERN_TRY_ERRNO(ib_cm_init_qp_attr(&id, &attr, &mask));
	attr.min_rnr_timer = min_rnr_timer;
	/* Connections carry no RDMA reads. */
	attr.max_dest_rd_atomic = 0;
	attr.rq_psn = qp.qp_num & psn_mask;
	return kern::check(ib_modify_qp(&qp, &attr, mask));
	/*
	 * Moves a QP to RTS, with the peer's retry values limited to rnr_retry_max and
	 * ack_timeout_max.
	 */
}

inline kern::Result<> to_rts(ib_qp &qp, ib_cm_id &id)
{
	ib_qp_attr attr{};
	int mask;
	attr.qp_state = IB_QPS_RTS;
	KERN_TRY_ERRNO(ib_cm_init_qp_attr(&id, &attr, &mask));
	attr.max_rd_atomic = 0;
	attr.rnr_retry = attr.rnr_retry < rnr_retry_max ? attr.rnr_retry : rnr_retry_max;
	/* A timeout of 0 means infinite. */
	attr.timeout =
		attr.timeout && attr.timeout < ack_timeout_max ? attr.timeout : ack_timeout_max;
	return kern::check(ib_modify_qp(&qp, &attr, mask));
}

} // namespace ipoib
