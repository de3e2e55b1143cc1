// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "records.hpp"

namespace mad::sa
{
namespace
{

std::uint8_t selected(u8 selector, u8 value)
{
	return ib::make_selected(static_cast<ib::Selector>(selector), value);
}

u8 selector(std::uint8_t byte)
{
	return static_cast<u8>(ib::selector_of(byte));
}

} // namespace

void pack(const sa_path_rec &from, ib::PathRecord &to)
{
	to = {};
	to.service_id = from.service_id.value();
	to.dgid = to_gid(from.dgid);
	to.sgid = to_gid(from.sgid);
	to.dlid = from.ib.dlid.value();
	to.slid = from.ib.slid.value();
	to.raw_flow_hop = (from.ib.raw_traffic ? 1u << 31 : 0) |
			  (from.flow_label.value() & 0xfffff) << 8 | from.hop_limit;
	to.traffic_class = from.traffic_class;
	to.reversible_num_path =
		static_cast<std::uint8_t>((from.reversible ? 0x80 : 0) | (from.numb_path & 0x7f));
	to.pkey = from.pkey.value();
	to.qos_class_sl =
		static_cast<std::uint16_t>((from.qos_class.value() & 0xfff) << 4 | (from.sl & 0xf));
	to.mtu_selector = selected(from.mtu_selector, from.mtu);
	to.rate_selector = selected(from.rate_selector, from.rate);
	to.lifetime_selector = selected(from.packet_life_time_selector, from.packet_life_time);
	to.preference = from.preference;
}

void unpack(const ib::PathRecord &from, sa_path_rec &to)
{
	to = {};
	to.rec_type = SA_PATH_REC_TYPE_IB;
	to.service_id = from.service_id.value();
	to.dgid = from_gid(from.dgid);
	to.sgid = from_gid(from.sgid);
	to.ib.dlid = from.dlid.value();
	to.ib.slid = from.slid.value();
	to.ib.raw_traffic = from.raw_flow_hop.value() >> 31;
	to.flow_label = from.flow_label();
	to.hop_limit = from.hop_limit();
	to.traffic_class = from.traffic_class;
	to.reversible = from.reversible();
	to.numb_path = from.num_path();
	to.pkey = from.pkey.value();
	to.qos_class = static_cast<std::uint16_t>(from.qos_class_sl.value() >> 4);
	to.sl = from.sl();
	to.mtu_selector = selector(from.mtu_selector);
	to.mtu = ib::selected_value(from.mtu_selector);
	to.rate_selector = selector(from.rate_selector);
	to.rate = ib::selected_value(from.rate_selector);
	to.packet_life_time_selector = selector(from.lifetime_selector);
	to.packet_life_time = ib::selected_value(from.lifetime_selector);
	to.preference = from.preference;
}

void pack(const ib_sa_mcmember_rec &from, ib::McMemberRecord &to)
{
	to = {};
	to.mgid = to_gid(from.mgid);
	to.port_gid = to_gid(from.port_gid);
	to.qkey = from.qkey.value();
	to.mlid = from.mlid.value();
	to.mtu_selector = selected(from.mtu_selector, from.mtu);
	to.traffic_class = from.traffic_class;
	to.pkey = from.pkey.value();
	to.rate_selector = selected(from.rate_selector, from.rate);
	to.lifetime_selector = selected(from.packet_life_time_selector, from.packet_life_time);
	to.set_sl_flow_hop(from.sl, from.flow_label.value(), from.hop_limit);
	to.set_scope_join_state(from.scope, from.join_state);
	to.proxy_join = from.proxy_join ? 0x80 : 0;
}

void unpack(const ib::McMemberRecord &from, ib_sa_mcmember_rec &to)
{
	to = {};
	to.mgid = from_gid(from.mgid);
	to.port_gid = from_gid(from.port_gid);
	to.qkey = from.qkey.value();
	to.mlid = from.mlid.value();
	to.mtu_selector = selector(from.mtu_selector);
	to.mtu = ib::selected_value(from.mtu_selector);
	to.traffic_class = from.traffic_class;
	to.pkey = from.pkey.value();
	to.rate_selector = selector(from.rate_selector);
	to.rate = ib::selected_value(from.rate_selector);
	to.packet_life_time_selector = selector(from.lifetime_selector);
	to.packet_life_time = ib::selected_value(from.lifetime_selector);
	to.sl = from.sl();
	to.flow_label = from.flow_label();
	to.hop_limit = from.hop_limit();
	to.scope = from.scope();
	to.join_state = from.join_state();
	to.proxy_join = from.proxy_join >> 7;
}

void pack(const ib_sa_service_rec &from, ib::ServiceRecord &to)
{
	to = {};
	to.id = from.id.value();
	to.gid = to_gid(from.gid);
	to.pkey = from.pkey.value();
	to.lease = from.lease.value();
	__builtin_memcpy(to.key, from.key, sizeof(to.key));
	__builtin_memcpy(to.name, from.name, sizeof(to.name));
	__builtin_memcpy(to.data8, from.data8, sizeof(to.data8));
	__builtin_memcpy(to.data16, from.data16, sizeof(to.data16));
	__builtin_memcpy(to.data32, from.data32, sizeof(to.data32));
	__builtin_memcpy(to.data64, from.data64, sizeof(to.data64));
}

void unpack(const ib::ServiceRecord &from, ib_sa_service_rec &to)
{
	to = {};
	to.id = from.id.value();
	to.gid = from_gid(from.gid);
	to.pkey = from.pkey.value();
	to.lease = from.lease.value();
	__builtin_memcpy(to.key, from.key, sizeof(to.key));
	__builtin_memcpy(to.name, from.name, sizeof(to.name));
	__builtin_memcpy(to.data8, from.data8, sizeof(to.data8));
	__builtin_memcpy(to.data16, from.data16, sizeof(to.data16));
	__builtin_memcpy(to.data32, from.data32, sizeof(to.data32));
	__builtin_memcpy(to.data64, from.data64, sizeof(to.data64));
}

void unpack(const ib::Notice &from, ib_sa_notice &to)
{
	to = {};
	to.is_generic = from.is_generic();
	to.type = from.type();
	to.producer = std::uint32_t{from.producer};
	to.trap_number = from.trap_number.value();
	to.issuer_lid = from.issuer_lid.value();
	__builtin_memcpy(to.data_details, from.details, sizeof(to.data_details));
	to.issuer_gid = from_gid(from.issuer_gid);
}

} // namespace mad::sa
