// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the attributes of subnet management (IBA 14.2.5). Each attribute begins at the start of
 * Smp::data.
 */
#pragma once

#include "mad.hpp"

namespace ib
{

enum SmAttribute : std::uint16_t {
	attr_sm_notice = 0x0002,
	attr_node_description = 0x0010,
	attr_node_info = 0x0011,
	attr_switch_info = 0x0012,
	attr_guid_info = 0x0014,
	attr_port_info = 0x0015,
	attr_pkey_table = 0x0016,
	attr_sl_to_vl = 0x0017,
	attr_vl_arbitration = 0x0018,
	attr_linear_forwarding = 0x0019,
	attr_random_forwarding = 0x001a,
	attr_multicast_forwarding = 0x001b,
	attr_sm_info = 0x0020,
	attr_vendor_diag = 0x0030,
	attr_led_info = 0x0031,
	/* Mellanox: extended speeds that came before those of the specification. */
	attr_mlnx_extended_port_info = 0xff90,
};

/* IBA 14.2.5.2: UTF-8, not terminated when all 64 bytes are used. */
struct NodeDescription {
	char text[64];
};
static_assert(sizeof(NodeDescription) == smp_data_bytes);

/* IBA 14.2.5.3. */
struct NodeInfo {
	std::uint8_t base_version;
	std::uint8_t class_version;
	std::uint8_t node_type;
	std::uint8_t num_ports;
	be64 system_image_guid;
	be64 node_guid;
	be64 port_guid;
	be16 partition_cap;
	be16 device_id;
	be32 revision;
	std::uint8_t local_port;
	be24 vendor_id;

	constexpr NodeType type() const { return static_cast<NodeType>(node_type); }
};
static_assert(sizeof(NodeInfo) == 40 && offsetof(NodeInfo, port_guid) == 20 &&
	      offsetof(NodeInfo, local_port) == 36);

/* IBA 14.2.5.4. */
struct SwitchInfo {
	be16 linear_fdb_cap;
	be16 random_fdb_cap;
	be16 multicast_fdb_cap;
	be16 linear_fdb_top;
	std::uint8_t default_port;
	std::uint8_t default_mcast_primary_port;
	std::uint8_t default_mcast_not_primary_port;
	/* LifeTimeValue in 7..3, PortStateChange in 2, OptimizedSLtoVL in 1..0. */
	std::uint8_t life_time_state_change;
	be16 lids_per_port;
	be16 partition_enforcement_cap;
	/* Inbound, outbound enforcement, filter raw inbound, outbound, enhanced port 0: 7..3. */
	std::uint8_t enforcement_flags;
	std::uint8_t reserved;
	be16 multicast_fdb_top;

	static constexpr std::uint8_t state_change_bit = 0x04;
	static constexpr std::uint8_t inbound_enforcement_cap = 0x80;
	static constexpr std::uint8_t outbound_enforcement_cap = 0x40;
	static constexpr std::uint8_t enhanced_port0 = 0x08;
	/*
	 * OptimizedSLtoVLMappingProgramming: a Set of SLtoVLMappingTable may be for all ports at
	 * once.
	 */
	static constexpr std::uint8_t optimized_sl_to_vl = 0x01;
	constexpr bool port_state_change() const
	{
		return (life_time_state_change & state_change_bit) != 0;
	}
	constexpr std::uint8_t life_time() const { return field_get<7, 3>(life_time_state_change); }
	constexpr void set_life_time(unsigned v)
	{
		life_time_state_change = field_set<7, 3>(life_time_state_change, v);
	}
};
static_assert(sizeof(SwitchInfo) == 20 && offsetof(SwitchInfo, multicast_fdb_top) == 18);

/* A block of eight entries of the GID table, IBA 14.2.5.5. */
struct GuidInfo {
	be64 guid[8];
};
static_assert(sizeof(GuidInfo) == smp_data_bytes);

/* Bits of PortInfo.CapabilityMask, IBA 14.2.5.6. */
enum PortCapability : std::uint32_t {
	port_cap_is_sm = 1u << 1,
	port_cap_notice = 1u << 2,
	port_cap_trap = 1u << 3,
	port_cap_optional_ipd = 1u << 4,
	port_cap_auto_migration = 1u << 5,
	port_cap_sl_mapping = 1u << 6,
	port_cap_mkey_nvram = 1u << 7,
	port_cap_pkey_nvram = 1u << 8,
	port_cap_led_info = 1u << 9,
	port_cap_sm_disabled = 1u << 10,
	port_cap_system_image_guid = 1u << 11,
	port_cap_pkey_switch_external_trap = 1u << 12,
	port_cap_extended_speeds = 1u << 14,
	port_cap_capability_mask2 = 1u << 15,
	port_cap_communication_mgmt = 1u << 16,
	port_cap_snmp_tunneling = 1u << 17,
	port_cap_reinit = 1u << 18,
	port_cap_device_mgmt = 1u << 19,
	port_cap_vendor_class = 1u << 20,
	port_cap_dr_notice = 1u << 21,
	port_cap_capability_mask_notice = 1u << 22,
	port_cap_boot_mgmt = 1u << 23,
	port_cap_link_round_trip_latency = 1u << 24,
	port_cap_client_reregistration = 1u << 25,
	port_cap_other_local_changes_notice = 1u << 26,
};

/* IBA 14.2.5.6. */
struct PortInfo {
	be64 mkey;
	be64 gid_prefix;
	be16 lid;
	be16 sm_lid;
	be32 capability_mask;
	be16 diag_code;
	be16 mkey_lease_period;
	std::uint8_t local_port;
	std::uint8_t link_width_enabled;
	std::uint8_t link_width_supported;
	std::uint8_t link_width_active;
	std::uint8_t speed_supported_state;
	std::uint8_t phys_state_down_default;
	std::uint8_t mkey_protect_lmc;
	std::uint8_t speed_active_enabled;
	std::uint8_t neighbor_mtu_sm_sl;
	std::uint8_t vl_cap_init_type;
	std::uint8_t vl_high_limit;
	std::uint8_t vl_arb_high_cap;
	std::uint8_t vl_arb_low_cap;
	std::uint8_t init_reply_mtu_cap;
	std::uint8_t vl_stall_hoq_life;
	std::uint8_t vl_oper_enforcement;
	be16 mkey_violations;
	be16 pkey_violations;
	be16 qkey_violations;
	std::uint8_t guid_cap;
	std::uint8_t rereg_subnet_timeout;
	std::uint8_t resp_time;
	std::uint8_t phys_overrun_errors;
	be16 max_credit_hint;
	std::uint8_t reserved;
	be24 link_round_trip_latency;
	be16 capability_mask2;
	std::uint8_t speed_ext_active_supported;
	std::uint8_t speed_ext_enabled;

	constexpr std::uint8_t speed_supported() const
	{
		return field_get<7, 4>(speed_supported_state);
	}
	constexpr PortState state() const
	{
		return static_cast<PortState>(field_get<3, 0>(speed_supported_state));
	}
	constexpr PhysState phys_state() const
	{
		return static_cast<PhysState>(field_get<7, 4>(phys_state_down_default));
	}
	constexpr std::uint8_t down_default() const
	{
		return field_get<3, 0>(phys_state_down_default);
	}
	constexpr std::uint8_t mkey_protect() const { return field_get<7, 6>(mkey_protect_lmc); }
	constexpr std::uint8_t lmc() const { return field_get<2, 0>(mkey_protect_lmc); }
	constexpr std::uint8_t speed_active() const
	{
		return field_get<7, 4>(speed_active_enabled);
	}
	constexpr std::uint8_t speed_enabled() const
	{
		return field_get<3, 0>(speed_active_enabled);
	}
	constexpr Mtu neighbor_mtu() const
	{
		return static_cast<Mtu>(field_get<7, 4>(neighbor_mtu_sm_sl));
	}
	constexpr std::uint8_t sm_sl() const { return field_get<3, 0>(neighbor_mtu_sm_sl); }
	constexpr std::uint8_t vl_cap() const { return field_get<7, 4>(vl_cap_init_type); }
	constexpr Mtu mtu_cap() const
	{
		return static_cast<Mtu>(field_get<3, 0>(init_reply_mtu_cap));
	}
	constexpr std::uint8_t hoq_life() const { return field_get<4, 0>(vl_stall_hoq_life); }
	constexpr std::uint8_t operational_vls() const
	{
		return field_get<7, 4>(vl_oper_enforcement);
	}
	constexpr bool client_reregister() const
	{
		return field_get<7, 7>(rereg_subnet_timeout) != 0;
	}
	constexpr std::uint8_t subnet_timeout() const
	{
		return field_get<4, 0>(rereg_subnet_timeout);
	}
	constexpr std::uint8_t speed_ext_active() const
	{
		return field_get<7, 4>(speed_ext_active_supported);
	}
	constexpr std::uint8_t speed_ext_supported() const
	{
		return field_get<3, 0>(speed_ext_active_supported);
	}

	constexpr void set_speed_supported(unsigned v)
	{
		speed_supported_state = field_set<7, 4>(speed_supported_state, v);
	}
	constexpr void set_state(PortState v)
	{
		speed_supported_state =
			field_set<3, 0>(speed_supported_state, static_cast<unsigned>(v));
	}
	constexpr void set_phys_state(PhysState v)
	{
		phys_state_down_default =
			field_set<7, 4>(phys_state_down_default, static_cast<unsigned>(v));
	}
	constexpr void set_down_default(unsigned v)
	{
		phys_state_down_default = field_set<3, 0>(phys_state_down_default, v);
	}
	constexpr void set_mkey_protect(unsigned v)
	{
		mkey_protect_lmc = field_set<7, 6>(mkey_protect_lmc, v);
	}
	constexpr void set_lmc(unsigned v)
	{
		mkey_protect_lmc = field_set<2, 0>(mkey_protect_lmc, v);
	}
	constexpr void set_speed_active(unsigned v)
	{
		speed_active_enabled = field_set<7, 4>(speed_active_enabled, v);
	}
	constexpr void set_speed_enabled(unsigned v)
	{
		speed_active_enabled = field_set<3, 0>(speed_active_enabled, v);
	}
	constexpr void set_neighbor_mtu(Mtu v)
	{
		neighbor_mtu_sm_sl = field_set<7, 4>(neighbor_mtu_sm_sl, static_cast<unsigned>(v));
	}
	constexpr void set_sm_sl(unsigned v)
	{
		neighbor_mtu_sm_sl = field_set<3, 0>(neighbor_mtu_sm_sl, v);
	}
	constexpr void set_vl_cap(unsigned v)
	{
		vl_cap_init_type = field_set<7, 4>(vl_cap_init_type, v);
	}
	constexpr void set_mtu_cap(Mtu v)
	{
		init_reply_mtu_cap = field_set<3, 0>(init_reply_mtu_cap, static_cast<unsigned>(v));
	}
	constexpr void set_operational_vls(unsigned v)
	{
		vl_oper_enforcement = field_set<7, 4>(vl_oper_enforcement, v);
	}
	constexpr void set_client_reregister(bool v)
	{
		rereg_subnet_timeout = field_set<7, 7>(rereg_subnet_timeout, v);
	}
	constexpr void set_subnet_timeout(unsigned v)
	{
		rereg_subnet_timeout = field_set<4, 0>(rereg_subnet_timeout, v);
	}
	constexpr void set_speed_ext(unsigned active, unsigned supported)
	{
		speed_ext_active_supported =
			static_cast<std::uint8_t>(active << 4 | (supported & 0xf));
	}

	/* Bits of vl_oper_enforcement, switch ports only. */
	static constexpr std::uint8_t enforce_inbound = 0x08;
	static constexpr std::uint8_t enforce_outbound = 0x04;
};
static_assert(sizeof(PortInfo) == 64);
static_assert(offsetof(PortInfo, capability_mask) == 20 && offsetof(PortInfo, local_port) == 28);
static_assert(offsetof(PortInfo, speed_supported_state) == 32 &&
	      offsetof(PortInfo, vl_oper_enforcement) == 43);
static_assert(offsetof(PortInfo, guid_cap) == 50 && offsetof(PortInfo, max_credit_hint) == 54);
static_assert(offsetof(PortInfo, speed_ext_active_supported) == 62);

/* VLCap and OperationalVLs encoding: 1 VL0, 2 VL0-1, 3 VL0-3, 4 VL0-7, 5 VL0-14. */
constexpr unsigned vl_count(unsigned code)
{
	return code == 5 ? 15 : code >= 1 && code <= 4 ? 1u << (code - 1) : 0;
}

/* A block of 32 P_Keys, IBA 14.2.5.7. Modifier: port in bits 31..16 (switch), block below. */
struct PkeyTable {
	be16 pkey[32];
};
static_assert(sizeof(PkeyTable) == smp_data_bytes);

/*
 * Bits of SLtoVL's modifier for a switch that has SwitchInfo::optimized_sl_to_vl; else 15..8 and
 * 7..0 name the ports.
 */
constexpr std::uint32_t sl_to_vl_all_outputs = 1u << 16;
constexpr std::uint32_t sl_to_vl_all_inputs = 1u << 17;

/* IBA 14.2.5.8: a nibble for each SL, SL 0 in the high half of byte 0. */
struct SlToVl {
	std::uint8_t pair[8];

	constexpr std::uint8_t vl(unsigned sl) const
	{
		std::uint8_t both = pair[(sl & 15) / 2];
		return static_cast<std::uint8_t>(sl & 1 ? both & 15 : both >> 4);
	}
	constexpr void set_vl(unsigned sl, unsigned vl)
	{
		std::uint8_t &both = pair[(sl & 15) / 2];
		both = sl & 1 ? field_set<3, 0>(both, vl) : field_set<7, 4>(both, vl);
	}
};
static_assert(sizeof(SlToVl) == 8);

/*
 * A block of 32 VL arbitration entries, IBA 14.2.5.9; the high byte of the modifier selects the
 * block.
 */
struct VlArbitration {
	struct Entry {
		std::uint8_t vl;
		std::uint8_t weight;
	} entry[32];
};
static_assert(sizeof(VlArbitration) == smp_data_bytes);

/* 64 entries of the linear forwarding table, IBA 14.2.5.10; modifier: block. */
struct LinearForwarding {
	std::uint8_t port[64];
};
static_assert(sizeof(LinearForwarding) == smp_data_bytes);
constexpr std::uint8_t lft_drop = 0xff;

/*
 * 32 entries of the multicast forwarding table, IBA 14.2.5.12. Modifier: position (which sixteen
 * ports) in bits 31..28, block in 8..0.
 */
struct MulticastForwarding {
	be16 ports[32];
};
static_assert(sizeof(MulticastForwarding) == smp_data_bytes);

enum class SmState : std::uint8_t { not_active = 0, discovering = 1, standby = 2, master = 3 };

/* Attribute modifiers of Set(SMInfo), IBA 14.4.1. */
enum SmInfoControl : std::uint32_t {
	sm_info_handover = 1,
	sm_info_acknowledge = 2,
	sm_info_disable = 3,
	sm_info_standby = 4,
	sm_info_discover = 5,
};

/* IBA 14.2.5.13. */
struct SmInfo {
	be64 guid;
	be64 sm_key;
	be32 act_count;
	std::uint8_t priority_state;

	constexpr std::uint8_t priority() const { return field_get<7, 4>(priority_state); }
	constexpr SmState state() const
	{
		return static_cast<SmState>(field_get<3, 0>(priority_state));
	}
};
static_assert(sizeof(SmInfo) == 21);

/* Details of trap 128: the LID of the switch. */
struct LinkStateChangeDetails {
	be16 lid;
	std::uint8_t reserved[52];
};
static_assert(sizeof(LinkStateChangeDetails) == 54);

/* Details of trap 144, IBA 14.2.5.1. */
struct CapabilityChangeDetails {
	be16 reserved1;
	be16 lid;
	std::uint8_t reserved2;
	std::uint8_t other_local_changes;
	be32 capability_mask;
	be16 change_flags;
	std::uint8_t reserved3[42];

	static constexpr std::uint16_t node_description_changed = 0x0001;
};
static_assert(sizeof(CapabilityChangeDetails) == 54);

/* Details of trap 256, IBA 14.2.5.1: the SMP with the wrong M_Key. */
struct BadMkeyDetails {
	be16 reserved1;
	be16 lid;
	be16 dr_slid;
	std::uint8_t method;
	std::uint8_t reserved2;
	be16 attr_id;
	be32 attr_mod;
	be64 mkey;
	std::uint8_t reserved3;
	/* DRNotice in bit 7, DRPathTruncated in 6, DRHopCount below. */
	std::uint8_t dr_hops;
	std::uint8_t dr_return_path[30];

	static constexpr std::uint8_t dr_notice = 0x80;
	static constexpr std::uint8_t dr_truncated = 0x40;
};
static_assert(sizeof(BadMkeyDetails) == 54 && offsetof(BadMkeyDetails, mkey) == 14);

/* Details of traps 257 and 258, IBA 14.2.5.1: the packet with the wrong P_Key or Q_Key. */
struct BadKeyDetails {
	be16 reserved1;
	be16 slid;
	be16 dlid;
	be32 key;
	/* SL in bits 31..28, source QP below. */
	be32 sl_source_qp;
	be32 dest_qp;
	Gid sgid;
	Gid dgid;
	std::uint8_t reserved2[4];
};
static_assert(sizeof(BadKeyDetails) == 54 && offsetof(BadKeyDetails, sgid) == 18);

/* Details of traps 64 to 67: the GID concerned. */
struct GidDetails {
	std::uint8_t reserved1[6];
	Gid gid;
	std::uint8_t reserved2[32];
};
static_assert(sizeof(GidDetails) == 54);

/* The attribute at the start of an SMP's data. */
template<class Attribute>
Attribute &smp_attribute(Smp &smp)
{
	static_assert(sizeof(Attribute) <= smp_data_bytes && alignof(Attribute) == 1);
	return *reinterpret_cast<Attribute *>(smp.data);
}
template<class Attribute>
const Attribute &smp_attribute(const Smp &smp)
{
	static_assert(sizeof(Attribute) <= smp_data_bytes && alignof(Attribute) == 1);
	return *reinterpret_cast<const Attribute *>(smp.data);
}

} // namespace ib
