// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_transition.hpp"
#include <kern/bits.hpp>
#include "ah.hpp"

namespace connectx {

namespace {

using Context = wire::QpContext;
using Path = wire::AddressPathLayout;
using wire::Opcode;

} // namespace

kern::Result<> put_path(u8 *path, const Capabilities &cap, const rdma_ah_attr &address, u32 port)
{
	if (port < 1 || port > cap.num_ports || address.sl > 15)
		return kern::Error{-EINVAL};
	Path::source_path_bits.set(path, address.ib.src_path_bits);
	Path::remote_lid.set(path, address.ib.dlid);
	Path::static_rate.set(path, static_rate(cap, address.static_rate));
	Path::counter_index.set(path, 0xff);
	if (address.ah_flags & IB_AH_GRH) {
		Path::grh.set(path, 1);
		Path::sgid_index.set(path, address.grh.sgid_index);
		Path::hop_limit.set(path, address.grh.hop_limit);
		Path::traffic_class.set(path, address.grh.traffic_class);
		Path::flow_label.set(path, address.grh.flow_label);
		__builtin_memcpy(path + Path::remote_gid, address.grh.dgid.raw, 16);
	}
	Path::sched_queue.set(path, 0x83 | (port - 1) << 6 | address.sl << 2);
	return {};
}

rdma_ah_attr get_path(const u8 *path, u32 num_ports)
{
	rdma_ah_attr address{};
	const u32 port = Path::sched_port.get(path) + 1;
	address.type = RDMA_AH_ATTR_TYPE_IB;
	address.port_num = port <= num_ports ? port : 1;
	address.sl = static_cast<u8>(Path::sched_sl.get(path));
	address.ib.dlid = static_cast<u16>(Path::remote_lid.get(path));
	address.ib.src_path_bits = static_cast<u8>(Path::source_path_bits.get(path));
	const u32 rate = Path::static_rate.get(path);
	address.static_rate = static_cast<u8>(rate > 5 ? rate - 5 : 0);
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

kern::Result<u32> put_attributes(u8 *context, const Capabilities &cap, const ib_qp_attr &attr, int mask,
				 u32 port, ib_qp_type type)
{
	u8 *const primary = context + Context::primary_path;
	u8 *const alternate = context + Context::alternate_path;
	u32 optional = 0;

	if (mask & IB_QP_AV) {
		TRY(put_path(primary, cap, attr.ah_attr, mask & IB_QP_PORT ? attr.port_num : port));
		optional |= wire::qp_opt::primary_path | wire::qp_opt::sched_queue;
	} else if (port) {
		// A datagram's own address vector tells where it goes; the context says which port.
		Path::sched_queue.set(primary, (type == IB_QPT_SMI ? 0x3f : 0x83) | (port - 1) << 6);
		Path::counter_index.set(primary, 0xff);
		if (mask & IB_QP_PORT)
			optional |= wire::qp_opt::sched_queue;
	}
	if (mask & IB_QP_PKEY_INDEX) {
		if (attr.pkey_index > Path::pkey_index.max())
			return kern::Error{-EINVAL};
		Path::pkey_index.set(primary, attr.pkey_index);
		optional |= wire::qp_opt::pkey_index;
	}
	if (mask & IB_QP_TIMEOUT) {
		Path::ack_timeout.set(primary, attr.timeout);
		optional |= wire::qp_opt::ack_timeout;
	}
	if (mask & IB_QP_ALT_PATH) {
		TRY(put_path(alternate, cap, attr.alt_ah_attr, attr.alt_port_num));
		Path::pkey_index.set(alternate, attr.alt_pkey_index);
		Path::ack_timeout.set(alternate, attr.alt_timeout);
		optional |= wire::qp_opt::alternate_path;
	}
	if (mask & IB_QP_PATH_MTU) {
		if (attr.path_mtu < IB_MTU_256 || attr.path_mtu > IB_MTU_4096)
			return kern::Error{-EINVAL};
		Context::mtu.set(context, attr.path_mtu);
		Context::log_max_message.set(context, cap.log_max_message);
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
		Context::rnr_retry.set(context, attr.rnr_retry);
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
	if (mask & IB_QP_PATH_MIG_STATE) {
		constexpr wire::MigrationState to_card[] = {wire::MigrationState::migrated,
							    wire::MigrationState::rearm,
							    wire::MigrationState::armed};
		if (static_cast<unsigned int>(attr.path_mig_state) > IB_MIG_ARMED)
			return kern::Error{-EINVAL};
		Context::migration_state.set(context, static_cast<u32>(to_card[attr.path_mig_state]));
		optional |= wire::qp_opt::migration_state;
	}
	return optional;
}

} // namespace connectx
