// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_context.hpp"
#include <kern/bits.hpp>
#include "ah.hpp"

namespace infinihost {

namespace {

using Context = wire::QpContext;
using Path = wire::PathLayout;

u32 log_reads(u32 count)
{
	return count ? kern::log2_ceil(count) : 0;
}

/* The verbs' rate of a part of the port's. */
u8 rate_of(u32 code)
{
	switch (code) {
	case rate_code::quarter:
		return IB_RATE_2_5_GBPS;
	case rate_code::half:
		return IB_RATE_5_GBPS;
	default:
		// An eighth is none that the verbs know.
		return IB_RATE_PORT_CURRENT;
	}
}

} // namespace

kern::Result<> put_path(u8 *path, const Capabilities &cap, const rdma_ah_attr &address, u32 port)
{
	if (port < 1 || port > cap.num_ports || address.sl > 15)
		return kern::Error{-EINVAL};
	Path::port.set(path, port);
	Path::source_path_bits.set(path, address.ib.src_path_bits);
	Path::remote_lid.set(path, address.ib.dlid);
	Path::static_rate.set(path, static_rate(cap, address.static_rate, sdr_4x_tenths));
	Path::sl.set(path, address.sl);
	if (address.ah_flags & IB_AH_GRH) {
		if (address.grh.sgid_index >= cap.port.gids)
			return kern::Error{-EINVAL};
		Path::grh.set(path, 1);
		// Of this port, where an address vector's counts over both.
		Path::sgid_index.set(path, address.grh.sgid_index);
		Path::hop_limit.set(path, address.grh.hop_limit);
		Path::traffic_class.set(path, address.grh.traffic_class);
		Path::flow_label.set(path, address.grh.flow_label);
		__builtin_memcpy(path + Path::remote_gid, address.grh.dgid.raw, 16);
	}
	return {};
}

rdma_ah_attr get_path(const u8 *path, u32 num_ports)
{
	rdma_ah_attr address{};
	const u32 port = Path::port.get(path);
	address.type = RDMA_AH_ATTR_TYPE_IB;
	address.port_num = port >= 1 && port <= num_ports ? port : 1;
	address.sl = static_cast<u8>(Path::sl.get(path));
	address.ib.dlid = static_cast<u16>(Path::remote_lid.get(path));
	address.ib.src_path_bits = static_cast<u8>(Path::source_path_bits.get(path));
	address.static_rate = rate_of(Path::static_rate.get(path));
	if (Path::grh.get(path)) {
		address.ah_flags = IB_AH_GRH;
		address.grh.sgid_index = static_cast<u8>(Path::sgid_index.get(path));
		address.grh.hop_limit = static_cast<u8>(Path::hop_limit.get(path));
		address.grh.traffic_class = static_cast<u8>(Path::traffic_class.get(path));
		address.grh.flow_label = Path::flow_label.get(path);
		__builtin_memcpy(address.grh.dgid.raw, path + Path::remote_gid, 16);
	}
	return address;
}

kern::Result<u32> put_attributes(u8 *context, const Capabilities &cap, const ib_qp_attr &attr, int mask, u32 port)
{
	u8 *const primary = context + Context::primary_path;
	u32 optional = 0;

	if (mask & IB_QP_ALT_PATH)
		return kern::Error{-EINVAL};
	if ((mask & IB_QP_PATH_MIG_STATE) && attr.path_mig_state != IB_MIG_MIGRATED)
		return kern::Error{-EINVAL};
	if (mask & IB_QP_AV) {
		TRY(put_path(primary, cap, attr.ah_attr, mask & IB_QP_PORT ? attr.port_num : port));
		optional |= wire::qp_opt::primary_path;
	} else if (port) {
		// A datagram's own address vector tells where it goes; the context says which port.
		Path::port.set(primary, port);
	}
	if (mask & IB_QP_PORT)
		optional |= wire::qp_opt::port;
	if (mask & IB_QP_PKEY_INDEX) {
		if (attr.pkey_index >= cap.port.pkeys)
			return kern::Error{-EINVAL};
		Path::pkey_index.set(primary, attr.pkey_index);
		optional |= wire::qp_opt::pkey_index;
	}
	if (mask & IB_QP_TIMEOUT) {
		Path::ack_timeout.set(primary, attr.timeout);
		optional |= wire::qp_opt::ack_timeout;
	}
	if (mask & IB_QP_PATH_MTU) {
		if (attr.path_mtu < IB_MTU_256 || static_cast<u32>(attr.path_mtu) > cap.port.max_mtu)
			return kern::Error{-EINVAL};
		Context::mtu.set(context, attr.path_mtu);
		Context::log_max_message.set(context, log_max_message);
	}
	if (mask & IB_QP_DEST_QPN)
		Context::remote_qpn.set(context, attr.dest_qp_num);
	if (mask & IB_QP_QKEY) {
		Context::qkey.set(context, attr.qkey);
		optional |= wire::qp_opt::qkey;
	}
	if (mask & IB_QP_RQ_PSN)
		Context::next_receive_psn.set(context, attr.rq_psn);
	if (mask & IB_QP_SQ_PSN)
		Context::next_send_psn.set(context, attr.sq_psn);
	if (mask & IB_QP_MIN_RNR_TIMER) {
		Context::min_rnr_timer.set(context, attr.min_rnr_timer);
		optional |= wire::qp_opt::min_rnr_timer;
	}
	if (mask & IB_QP_RETRY_CNT) {
		Context::retry_count.set(context, attr.retry_cnt);
		optional |= wire::qp_opt::retry_count;
	}
	if (mask & IB_QP_RNR_RETRY) {
		Path::rnr_retry.set(primary, attr.rnr_retry);
		optional |= wire::qp_opt::rnr_retry;
	}
	if (mask & IB_QP_MAX_QP_RD_ATOMIC) {
		const u32 log = log_reads(attr.max_rd_atomic);
		if (log > cap.log_max_requester_reads)
			return kern::Error{-EINVAL};
		Context::sra_max.set(context, log);
		optional |= wire::qp_opt::sra_max;
	}
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC) {
		const u32 log = log_reads(attr.max_dest_rd_atomic);
		if (log > cap.log_max_responder_reads)
			return kern::Error{-EINVAL};
		Context::rra_max.set(context, log);
		optional |= wire::qp_opt::rra_max;
	}
	return optional;
}

void get_attributes(const u8 *context, u32 num_ports, bool connected, ib_qp_attr &attr)
{
	const u8 *const primary = context + Context::primary_path;
	attr.path_mtu = static_cast<ib_mtu>(Context::mtu.get(context));
	attr.path_mig_state = IB_MIG_MIGRATED;
	attr.qkey = Context::qkey.get(context);
	attr.rq_psn = Context::next_receive_psn.get(context);
	attr.sq_psn = Context::next_send_psn.get(context);
	attr.dest_qp_num = Context::remote_qpn.get(context);
	attr.qp_access_flags = (Context::remote_read.get(context) ? IB_ACCESS_REMOTE_READ : 0) |
			       (Context::remote_write.get(context) ? IB_ACCESS_REMOTE_WRITE : 0) |
			       (Context::remote_atomic.get(context) ? IB_ACCESS_REMOTE_ATOMIC : 0);
	if (connected)
		attr.ah_attr = get_path(primary, num_ports);
	attr.pkey_index = static_cast<u16>(Path::pkey_index.get(primary));
	attr.port_num = Path::port.get(primary);
	attr.max_rd_atomic = static_cast<u8>(1u << Context::sra_max.get(context));
	attr.max_dest_rd_atomic = static_cast<u8>(1u << Context::rra_max.get(context));
	attr.min_rnr_timer = static_cast<u8>(Context::min_rnr_timer.get(context));
	attr.timeout = static_cast<u8>(Path::ack_timeout.get(primary));
	attr.retry_cnt = static_cast<u8>(Context::retry_count.get(context));
	attr.rnr_retry = static_cast<u8>(Path::rnr_retry.get(primary));
}

} // namespace infinihost
