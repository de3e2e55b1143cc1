// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the records of subnet administration (IBA 15.2.5). A single record begins at the start of
 * SaMad::data. In a table, the records follow each other at intervals of SaMad::attr_offset words
 * of eight bytes.
 */
#pragma once

#include "smp.hpp"

namespace ib
{

enum SaAttribute : std::uint16_t {
	attr_node_record = 0x0011,
	attr_port_info_record = 0x0012,
	attr_sl_to_vl_record = 0x0013,
	attr_switch_info_record = 0x0014,
	attr_linear_forwarding_record = 0x0015,
	attr_multicast_forwarding_record = 0x0017,
	attr_sm_info_record = 0x0018,
	attr_link_record = 0x0020,
	attr_guid_info_record = 0x0030,
	attr_service_record = 0x0031,
	attr_pkey_table_record = 0x0033,
	attr_path_record = 0x0035,
	attr_vl_arbitration_record = 0x0036,
	attr_mc_member_record = 0x0038,
	attr_trace_record = 0x0039,
	attr_multi_path_record = 0x003a,
	attr_service_association_record = 0x003b,
	attr_inform_info_record = 0x00f3,
};

/* Bits of the SA's ClassPortInfo.CapabilityMask, IBA 15.2.4. */
enum SaCapability : std::uint16_t {
	sa_cap_optional_records = 1u << 8,
	sa_cap_ud_multicast = 1u << 9,
	sa_cap_multi_path = 1u << 10,
	sa_cap_reinit = 1u << 11,
};
/* Bits of the 27-bit CapabilityMask2. */
enum SaCapability2 : std::uint32_t {
	sa_cap2_full_portinfo_record = 1u << 2,
	sa_cap2_send_only_full_member = 1u << 3,
};

/* The relation of the answer to a requested MTU, rate or lifetime, IBA 15.2.5.16. */
enum class Selector : std::uint8_t { greater = 0, less = 1, exactly = 2, largest = 3 };

/* Component bit n of SaMad::component_mask. */
constexpr std::uint64_t component(unsigned n)
{
	return std::uint64_t{1} << n;
}

/* IBA 15.2.5.2. */
struct NodeRecord {
	be16 lid;
	be16 reserved;
	NodeInfo info;
	NodeDescription description;

	enum Component : std::uint8_t {
		c_lid = 0,
		c_reserved,
		c_base_version,
		c_class_version,
		c_node_type,
		c_num_ports,
		c_system_image_guid,
		c_node_guid,
		c_port_guid,
		c_partition_cap,
		c_device_id,
		c_revision,
		c_local_port,
		c_vendor_id,
		c_description,
	};
};
static_assert(sizeof(NodeRecord) == 108 && offsetof(NodeRecord, description) == 44);

/* IBA 15.2.5.3. Component bits beyond the RID follow the fields of PortInfo. */
struct PortInfoRecord {
	be16 lid;
	std::uint8_t port;
	std::uint8_t options;
	PortInfo info;

	enum Component : std::uint8_t {
		c_lid = 0,
		c_port = 1,
		c_options = 2,
		c_mkey = 3,
		c_gid_prefix = 4,
		c_base_lid = 5,
		c_sm_lid = 6,
		c_capability_mask = 7,
		c_diag_code = 8,
		c_mkey_lease_period = 9,
		c_local_port = 10,
		c_link_width_enabled = 11,
		c_link_width_supported = 12,
		c_link_width_active = 13,
		c_speed_supported = 14,
		c_port_state = 15,
		c_phys_state = 16,
		c_down_default = 17,
		c_mkey_protect = 18,
		c_lmc = 19,
		c_speed_active = 20,
		c_speed_enabled = 21,
		c_neighbor_mtu = 22,
		c_sm_sl = 23,
		c_vl_cap = 24,
		c_mtu_cap = 29,
	};
};
static_assert(sizeof(PortInfoRecord) == 68);

/* IBA 15.2.5.5. */
struct SwitchInfoRecord {
	be16 lid;
	be16 reserved;
	SwitchInfo info;

	enum Component : std::uint8_t { c_lid = 0 };
};
static_assert(sizeof(SwitchInfoRecord) == 24);

/* IBA 15.2.5.4. */
struct SlToVlRecord {
	be16 lid;
	std::uint8_t in_port;
	std::uint8_t out_port;
	be32 reserved;
	SlToVl table;

	enum Component : std::uint8_t { c_lid = 0, c_in_port = 1, c_out_port = 2 };
};
static_assert(sizeof(SlToVlRecord) == 16);

/* IBA 15.2.5.6. */
struct LinearForwardingRecord {
	be16 lid;
	be16 block;
	be32 reserved;
	LinearForwarding table;

	enum Component : std::uint8_t { c_lid = 0, c_block = 1 };
};
static_assert(sizeof(LinearForwardingRecord) == 72);

/* IBA 15.2.5.8: position in bits 15..12, block in 8..0. */
struct MulticastForwardingRecord {
	be16 lid;
	be16 position_block;
	be32 reserved;
	MulticastForwarding table;

	enum Component : std::uint8_t { c_lid = 0, c_position = 1, c_block = 3 };
};
static_assert(sizeof(MulticastForwardingRecord) == 72);

/* IBA 15.2.5.11. */
struct PkeyTableRecord {
	be16 lid;
	be16 block;
	std::uint8_t port;
	std::uint8_t reserved[3];
	PkeyTable table;

	enum Component : std::uint8_t { c_lid = 0, c_block = 1, c_port = 2 };
};
static_assert(sizeof(PkeyTableRecord) == 72);

/* IBA 15.2.5.9. */
struct VlArbitrationRecord {
	be16 lid;
	std::uint8_t port;
	std::uint8_t block;
	be32 reserved;
	VlArbitration table;

	enum Component : std::uint8_t { c_lid = 0, c_port = 1, c_block = 2 };
};
static_assert(sizeof(VlArbitrationRecord) == 72);

/* IBA 15.2.5.10. */
struct SmInfoRecord {
	be16 lid;
	be16 reserved;
	SmInfo info;
	std::uint8_t reserved2[3];

	enum Component : std::uint8_t {
		c_lid = 0,
		c_guid = 2,
		c_sm_key = 3,
		c_act_count = 4,
		c_priority = 5,
		c_state = 6,
	};
};
static_assert(sizeof(SmInfoRecord) == 28);

/* IBA 15.2.5.13. */
struct LinkRecord {
	be16 from_lid;
	std::uint8_t from_port;
	std::uint8_t to_port;
	be16 to_lid;

	enum Component : std::uint8_t {
		c_from_lid = 0,
		c_from_port = 1,
		c_to_port = 2,
		c_to_lid = 3
	};
};
static_assert(sizeof(LinkRecord) == 6);

/* IBA 15.2.5.18. */
struct GuidInfoRecord {
	be16 lid;
	std::uint8_t block;
	std::uint8_t reserved1;
	be32 reserved2;
	GuidInfo info;

	enum Component : std::uint8_t { c_lid = 0, c_block = 1 };
};
static_assert(sizeof(GuidInfoRecord) == 72);

/* IBA 15.2.5.14. */
struct ServiceRecord {
	be64 id;
	Gid gid;
	be16 pkey;
	be16 reserved;
	/* Seconds; 0xffffffff never ends. */
	be32 lease;
	std::uint8_t key[16];
	char name[64];
	std::uint8_t data8[16];
	be16 data16[8];
	be32 data32[4];
	be64 data64[2];

	enum Component : std::uint8_t {
		c_id = 0,
		c_gid = 1,
		c_pkey = 2,
		c_lease = 4,
		c_key = 5,
		c_name = 6,
		c_data8_first = 7,
		c_data16_first = 23,
		c_data32_first = 31,
		c_data64_first = 35,
	};
	static constexpr std::uint32_t lease_forever = 0xffffffff;
};
static_assert(sizeof(ServiceRecord) == 176 && offsetof(ServiceRecord, name) == 48);

/* IBA 15.2.5.16. */
struct PathRecord {
	be64 service_id;
	Gid dgid;
	Gid sgid;
	be16 dlid;
	be16 slid;
	/* RawTraffic 31, FlowLabel 27..8, HopLimit 7..0. */
	be32 raw_flow_hop;
	std::uint8_t traffic_class;
	std::uint8_t reversible_num_path;
	be16 pkey;
	be16 qos_class_sl;
	std::uint8_t mtu_selector;
	std::uint8_t rate_selector;
	std::uint8_t lifetime_selector;
	std::uint8_t preference;
	std::uint8_t reserved[6];

	enum Component : std::uint8_t {
		c_service_id_high = 0,
		c_service_id_low = 1,
		c_dgid = 2,
		c_sgid = 3,
		c_dlid = 4,
		c_slid = 5,
		c_raw_traffic = 6,
		c_flow_label = 8,
		c_hop_limit = 9,
		c_traffic_class = 10,
		c_reversible = 11,
		c_num_path = 12,
		c_pkey = 13,
		c_qos_class = 14,
		c_sl = 15,
		c_mtu_selector = 16,
		c_mtu = 17,
		c_rate_selector = 18,
		c_rate = 19,
		c_lifetime_selector = 20,
		c_lifetime = 21,
		c_preference = 22,
	};

	constexpr std::uint32_t flow_label() const
	{
		return field_get<27, 8>(raw_flow_hop.value());
	}
	constexpr std::uint8_t hop_limit() const
	{
		return static_cast<std::uint8_t>(field_get<7, 0>(raw_flow_hop.value()));
	}
	constexpr bool reversible() const { return field_get<7, 7>(reversible_num_path) != 0; }
	constexpr std::uint8_t num_path() const { return field_get<6, 0>(reversible_num_path); }
	constexpr std::uint8_t sl() const
	{
		return static_cast<std::uint8_t>(field_get<3, 0>(qos_class_sl.value()));
	}
};
static_assert(sizeof(PathRecord) == 64 && offsetof(PathRecord, dlid) == 40 &&
	      offsetof(PathRecord, pkey) == 50 && offsetof(PathRecord, preference) == 57);

/* IBA 15.2.5.17. */
struct McMemberRecord {
	Gid mgid;
	Gid port_gid;
	be32 qkey;
	be16 mlid;
	std::uint8_t mtu_selector;
	std::uint8_t traffic_class;
	be16 pkey;
	std::uint8_t rate_selector;
	std::uint8_t lifetime_selector;
	/* SL 31..28, FlowLabel 27..8, HopLimit 7..0. */
	be32 sl_flow_hop;
	std::uint8_t scope_join_state;
	std::uint8_t proxy_join;
	be16 reserved;

	enum Component : std::uint8_t {
		c_mgid = 0,
		c_port_gid = 1,
		c_qkey = 2,
		c_mlid = 3,
		c_mtu_selector = 4,
		c_mtu = 5,
		c_traffic_class = 6,
		c_pkey = 7,
		c_rate_selector = 8,
		c_rate = 9,
		c_lifetime_selector = 10,
		c_lifetime = 11,
		c_sl = 12,
		c_flow_label = 13,
		c_hop_limit = 14,
		c_scope = 15,
		c_join_state = 16,
		c_proxy_join = 17,
	};

	enum JoinState : std::uint8_t {
		full_member = 1,
		non_member = 2,
		send_only_non_member = 4,
		send_only_full_member = 8,
	};

	/* In proxy_join: another port has requested the membership. */
	static constexpr std::uint8_t proxy_join_bit = 0x80;

	constexpr std::uint8_t sl() const
	{
		return static_cast<std::uint8_t>(field_get<31, 28>(sl_flow_hop.value()));
	}
	constexpr std::uint32_t flow_label() const { return field_get<27, 8>(sl_flow_hop.value()); }
	constexpr std::uint8_t hop_limit() const
	{
		return static_cast<std::uint8_t>(field_get<7, 0>(sl_flow_hop.value()));
	}
	constexpr std::uint8_t scope() const { return field_get<7, 4>(scope_join_state); }
	constexpr std::uint8_t join_state() const { return field_get<3, 0>(scope_join_state); }
	constexpr void set_sl_flow_hop(unsigned sl, std::uint32_t flow, unsigned hop)
	{
		sl_flow_hop = field_set<31, 28>(
			field_set<27, 8>(field_set<7, 0>(std::uint32_t{0}, hop), flow), sl);
	}
	constexpr void set_scope_join_state(unsigned scope, unsigned join)
	{
		scope_join_state = static_cast<std::uint8_t>(scope << 4 | (join & 15));
	}
};
static_assert(sizeof(McMemberRecord) == 52 && offsetof(McMemberRecord, mlid) == 36 &&
	      offsetof(McMemberRecord, scope_join_state) == 48);

/* MtuSelector, RateSelector and LifeTimeSelector share a byte with their value. */
constexpr Selector selector_of(std::uint8_t byte)
{
	return static_cast<Selector>(field_get<7, 6>(byte));
}
constexpr std::uint8_t selected_value(std::uint8_t byte)
{
	return field_get<5, 0>(byte);
}
constexpr std::uint8_t make_selected(Selector selector, unsigned value)
{
	return static_cast<std::uint8_t>(static_cast<unsigned>(selector) << 6 | (value & 0x3f));
}

/* True if an existing value satisfies a requested one. `largest` accepts any. */
constexpr bool selector_allows(Selector selector, unsigned have, unsigned wanted)
{
	switch (selector) {
	case Selector::greater:
		return have > wanted;
	case Selector::less:
		return have < wanted;
	case Selector::exactly:
		return have == wanted;
	case Selector::largest:
		return true;
	}
	return false;
}

/* IBA 15.2.5.12. */
struct InformInfoRecord {
	Gid subscriber_gid;
	be16 enumeration;
	std::uint8_t reserved[6];
	InformInfo info;

	enum Component : std::uint8_t { c_subscriber_gid = 0, c_enumeration = 1 };
};
static_assert(sizeof(InformInfoRecord) == 60);

/*
 * The multicast GID of IP over InfiniBand, RFC 4391 section 4: FF1s:signature:P_Key:… with the low
 * bits of the IP group behind. The broadcast group is the IPv4 one with 0xffffffff.
 */
constexpr std::uint16_t ipoib_signature_ipv4 = 0x401b;
constexpr std::uint16_t ipoib_signature_ipv6 = 0x601b;
constexpr std::uint8_t scope_link_local = 2;

constexpr Gid ipoib_broadcast_gid(Pkey pkey, std::uint8_t scope = scope_link_local)
{
	std::uint64_t high = std::uint64_t{0xff10} << 48 | std::uint64_t{scope & 0xfu} << 48 |
			     std::uint64_t{ipoib_signature_ipv4} << 32 |
			     std::uint64_t{static_cast<Pkey>(pkey | pkey_full_bit)} << 16;
	return Gid::from_parts(high, 0xffffffff);
}
static_assert(ipoib_broadcast_gid(0xffff).subnet_prefix() == 0xff12401bffff0000);

} // namespace ib
