// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_transition.hpp"
#include "../mellanox_icm/qp_attributes.hpp"
#include "ah.hpp"
#include "family.hpp"

namespace mlx4
{

namespace
{

using Context = wire::QpContext;
using Path = wire::AddressPathLayout;

} // namespace

kern::Result<> put_path(u8 *path, const Capabilities &cap, const rdma_ah_attr &address, u32 port)
{
	if (port < 1 || port > cap.num_ports || address.sl > 15)
		return kern::Error{-EINVAL};
	put_route<Path>(path, address);
	Path::static_rate.set(path, static_rate(cap, address.static_rate));
	Path::counter_index.set(path, 0xff);
	Path::sched_queue.set(path, 0x83 | (port - 1) << 6 | address.sl << 2);
	return {};
}

rdma_ah_attr get_path(const u8 *path, u32 num_ports)
{
	rdma_ah_attr address{};
	const u32 port = Path::sched_port.get(path) + 1;
	get_route<Path>(path, address);
	address.port_num = port <= num_ports ? port : 1;
	address.sl = static_cast<u8>(Path::sched_sl.get(path));
	const u32 rate = Path::static_rate.get(path);
	address.static_rate = static_cast<u8>(rate > 5 ? rate - 5 : 0);
	return address;
}

kern::Result<u32> put_attributes(u8 *context, const Capabilities &cap, const ib_qp_attr &attr,
				 int mask, u32 port, ib_qp_type type)
{
	u8 *const primary = context + Context::primary_path;
	u8 *const alternate = context + Context::alternate_path;
	u32 optional = KERN_TRY((put_plain_attributes<Context, Path>(context, cap, attr, mask)));

	if (mask & IB_QP_AV) {
		KERN_TRY(put_path(primary, cap, attr.ah_attr,
				  mask & IB_QP_PORT ? attr.port_num : port));
		optional |= wire::qp_opt::primary_path | wire::qp_opt::sched_queue;
	} else if (port) {
		// A datagram has its own address vector, so the context only contains the port.
		Path::sched_queue.set(primary, (type == IB_QPT_SMI ? 0x3f : 0x83) | (port - 1)
											    << 6);
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
	if (mask & IB_QP_ALT_PATH) {
		KERN_TRY(put_path(alternate, cap, attr.alt_ah_attr, attr.alt_port_num));
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
	if (mask & IB_QP_RNR_RETRY) {
		Context::rnr_retry.set(context, attr.rnr_retry);
		optional |= wire::qp_opt::rnr_retry;
	}
	if (mask & IB_QP_PATH_MIG_STATE) {
		constexpr wire::MigrationState to_card[] = {wire::MigrationState::migrated,
							    wire::MigrationState::rearm,
							    wire::MigrationState::armed};
		if (static_cast<unsigned int>(attr.path_mig_state) > IB_MIG_ARMED)
			return kern::Error{-EINVAL};
		Context::migration_state.set(context,
					     static_cast<u32>(to_card[attr.path_mig_state]));
		optional |= wire::qp_opt::migration_state;
	}
	return optional;
}

} // namespace mlx4
