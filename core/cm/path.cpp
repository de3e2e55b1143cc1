// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "path.hpp"

#include <rdma/ib_cache.h>

namespace cm
{
namespace
{

ib::Gid to_gid(const ib_gid &gid)
{
	ib::Gid to;
	__builtin_memcpy(to.raw, gid.raw, sizeof(to.raw));
	return to;
}

ib_gid from_gid(const ib::Gid &gid)
{
	ib_gid to;
	__builtin_memcpy(to.raw, gid.raw, sizeof(to.raw));
	return to;
}

/* Hop limits of 0 and 1 keep a packet in its subnet (IBA 8.3.6). */
constexpr bool leaves_subnet(u8 hop_limit)
{
	return hop_limit > 1;
}

} // namespace

kern::Result<Route> find_route(ib_device &device, const sa_path_rec &path)
{
	Route route{};
	sa_path_rec rec = path;
	route.dgid = path.dgid;
	/* Unused table entries are zero. */
	if (rdma_is_zero_gid(&path.sgid) || ib::pkey_base(path.pkey.value()) == 0)
		return kern::Error{-ENOENT};
	KERN_TRY_ERRNO(ib_find_cached_gid(&device, &path.sgid, &route.port, &route.sgid_index));
	KERN_TRY_ERRNO(
		ib_find_cached_pkey(&device, route.port, path.pkey.value(), &route.pkey_index));
	KERN_TRY_ERRNO(ib_init_ah_attr_from_path(&device, route.port, &rec, &route.attr));
	return route;
}

ib::CmPath to_wire(const sa_path_rec &path, u8 ca_ack_delay)
{
	const bool routed = leaves_subnet(path.hop_limit);
	ib::CmPath wire{};
	wire.local_lid = routed ? ib::lid_permissive : path.ib.slid.value();
	wire.remote_lid = routed ? ib::lid_permissive : path.ib.dlid.value();
	wire.local_gid = to_gid(path.sgid);
	wire.remote_gid = to_gid(path.dgid);
	wire.set_flow_label(path.flow_label.value());
	wire.set_rate(path.rate);
	wire.traffic_class = path.traffic_class;
	wire.hop_limit = path.hop_limit;
	wire.set_sl(path.sl);
	wire.set_subnet_local(!routed);
	wire.set_ack_timeout(ack_timeout(ca_ack_delay, path.packet_life_time));
	return wire;
}

sa_path_rec from_wire(const ib::CmPath &wire, u16 pkey, u8 mtu, const ib_wc &wc, u16 port_lid)
{
	sa_path_rec path{};
	path.rec_type = SA_PATH_REC_TYPE_IB;
	path.sgid = from_gid(wire.remote_gid);
	path.dgid = from_gid(wire.local_gid);
	path.ib.slid = wire.remote_lid.value();
	path.ib.dlid = wire.local_lid.value();
	path.sl = wire.sl();
	if (!wire.subnet_local()) {
		path.ib.dlid = static_cast<u16>(wc.slid);
		path.ib.slid = static_cast<u16>(port_lid | wc.dlid_path_bits);
		path.sl = wc.sl;
	}
	path.flow_label = wire.flow_label();
	path.hop_limit = wire.hop_limit;
	path.traffic_class = wire.traffic_class;
	path.reversible = 1;
	path.numb_path = 1;
	path.pkey = pkey;
	path.mtu_selector = IB_SA_EQ;
	path.mtu = mtu;
	path.rate_selector = IB_SA_EQ;
	path.rate = wire.rate();
	path.packet_life_time_selector = IB_SA_EQ;
	/* The ACK timeout of a path is twice its packet lifetime (IBA 12.7.34). */
	path.packet_life_time =
		wire.ack_timeout() ? static_cast<u8>(wire.ack_timeout() - 1) : u8{0};
	return path;
}

} // namespace cm
