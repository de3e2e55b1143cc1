// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "qp_context.hpp"
#include "../mellanox_icm/qp_attributes.hpp"
#include "ah.hpp"
#include "family.hpp"

namespace mthca
{

namespace
{

using Context = wire::QpContext;
using Path = wire::PathLayout;

/* Returns the verbs' rate for a code that is a fraction of the port's rate. */
u8 rate_of(u32 code)
{
	switch (code) {
	case rate_code::quarter:
		return IB_RATE_2_5_GBPS;
	case rate_code::half:
		return IB_RATE_5_GBPS;
	default:
		// The verbs have no rate for an eighth.
		return IB_RATE_PORT_CURRENT;
	}
}

} // namespace

kern::Result<> put_path(u8 *path, const Capabilities &cap, const rdma_ah_attr &address, u32 port)
{
	if (port < 1 || port > cap.num_ports || address.sl > 15)
		return kern::Error{-EINVAL};
	if ((address.ah_flags & IB_AH_GRH) && address.grh.sgid_index >= cap.port.gids)
		return kern::Error{-EINVAL};
	// This index counts the GIDs of one port; in an address vector it counts those of both
	// ports.
	put_route<Path>(path, address);
	Path::port.set(path, port);
	Path::static_rate.set(path, static_rate(cap, address.static_rate, sdr_4x_tenths));
	Path::sl.set(path, address.sl);
	return {};
}

rdma_ah_attr get_path(const u8 *path, u32 num_ports)
{
	rdma_ah_attr address{};
	const u32 port = Path::port.get(path);
	get_route<Path>(path, address);
	address.port_num = port >= 1 && port <= num_ports ? port : 1;
	address.sl = static_cast<u8>(Path::sl.get(path));
	address.static_rate = rate_of(Path::static_rate.get(path));
	return address;
}

kern::Result<u32> put_attributes(u8 *context, const Capabilities &cap, const ib_qp_attr &attr,
				 int mask, u32 port)
{
	u8 *const primary = context + Context::primary_path;

	if (mask & IB_QP_ALT_PATH)
		return kern::Error{-EINVAL};
	if ((mask & IB_QP_PATH_MIG_STATE) && attr.path_mig_state != IB_MIG_MIGRATED)
		return kern::Error{-EINVAL};
	u32 optional = KERN_TRY((put_plain_attributes<Context, Path>(context, cap, attr, mask)));
	if (mask & IB_QP_AV) {
		KERN_TRY(put_path(primary, cap, attr.ah_attr,
				  mask & IB_QP_PORT ? attr.port_num : port));
		optional |= wire::qp_opt::primary_path;
	} else if (port) {
		// A datagram has its own address vector, so the context only contains the port.
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
	if (mask & IB_QP_PATH_MTU) {
		if (attr.path_mtu < IB_MTU_256 ||
		    static_cast<u32>(attr.path_mtu) > cap.port.max_mtu)
			return kern::Error{-EINVAL};
		Context::mtu.set(context, attr.path_mtu);
		Context::log_max_message.set(context, log_max_message);
	}
	if (mask & IB_QP_RNR_RETRY) {
		Path::rnr_retry.set(primary, attr.rnr_retry);
		optional |= wire::qp_opt::rnr_retry;
	}
	return optional;
}

void get_attributes(const u8 *context, u32 num_ports, bool connected, ib_qp_attr &attr)
{
	const u8 *const primary = context + Context::primary_path;
	get_plain_attributes<Context, Path>(context, attr);
	attr.path_mig_state = IB_MIG_MIGRATED;
	if (connected)
		attr.ah_attr = get_path(primary, num_ports);
	attr.port_num = Path::port.get(primary);
	attr.rnr_retry = static_cast<u8>(Path::rnr_retry.get(primary));
}

} // namespace mthca
