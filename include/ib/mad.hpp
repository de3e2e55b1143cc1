// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the format of management datagrams: the common header, and the layouts of the management
 * classes (IBA 13.4).
 */
#pragma once

#include "types.hpp"

namespace ib
{

constexpr unsigned mad_bytes = 256;
constexpr std::uint8_t mad_base_version = 1;

/* Management classes, IBA 13.4.4. */
enum class MgmtClass : std::uint8_t {
	subn_lid_routed = 0x01,
	subn_adm = 0x03,
	perf = 0x04,
	bm = 0x05,
	device_mgmt = 0x06,
	com_mgt = 0x07,
	snmp = 0x08,
	vendor_range1_first = 0x09,
	vendor_range1_last = 0x0f,
	dev_adm = 0x10,
	boot_mgt = 0x11,
	bis = 0x12,
	congestion = 0x21,
	vendor_range2_first = 0x30,
	vendor_range2_last = 0x4f,
	subn_directed_route = 0x81,
};

/* Methods, IBA 13.4.5 and 15.2.2. Bit 7 marks a response. */
enum class MadMethod : std::uint8_t {
	get = 0x01,
	set = 0x02,
	send = 0x03,
	trap = 0x05,
	report = 0x06,
	trap_repress = 0x07,
	get_table = 0x12,
	get_trace_table = 0x13,
	get_multi = 0x14,
	remove = 0x15,
	get_resp = 0x81,
	report_resp = 0x86,
	get_table_resp = 0x92,
	get_multi_resp = 0x94,
	remove_resp = 0x95,
};
constexpr std::uint8_t mad_response_bit = 0x80;

/* Common status bits, IBA 13.4.7; class-specific ones live in bits 15..8. */
enum MadStatus : std::uint16_t {
	mad_status_ok = 0x0000,
	mad_status_busy = 0x0001,
	mad_status_redirect = 0x0002,
	mad_status_bad_version = 0x0004,
	mad_status_unsupported_method = 0x0008,
	mad_status_unsupported_method_attribute = 0x000c,
	mad_status_invalid_value = 0x001c,
	/* SMP only: the D bit of a returning directed-route SMP, IBA 14.2.1.2. */
	mad_status_direction = 0x8000,
};

/* SA class-specific status, IBA 15.2.3 (already shifted to bits 15..8). */
enum SaStatus : std::uint16_t {
	sa_status_no_resources = 0x0100,
	sa_status_req_invalid = 0x0200,
	sa_status_no_records = 0x0300,
	sa_status_too_many_records = 0x0400,
	sa_status_invalid_gid = 0x0500,
	sa_status_insufficient_components = 0x0600,
	sa_status_denied = 0x0700,
	sa_status_priority_suggested = 0x0800,
};

/* Attributes that every class shares, IBA 13.4.8. */
enum CommonAttribute : std::uint16_t {
	attr_class_port_info = 0x0001,
	attr_notice = 0x0002,
	attr_inform_info = 0x0003,
};

/* Common MAD header, IBA 13.4.3. */
struct MadHeader {
	std::uint8_t base_version;
	std::uint8_t mgmt_class;
	std::uint8_t class_version;
	std::uint8_t method;
	be16 status;
	/* Hop pointer and hop count of a directed-route SMP; reserved otherwise. */
	std::uint8_t hop_ptr;
	std::uint8_t hop_cnt;
	be64 tid;
	be16 attr_id;
	be16 reserved;
	be32 attr_mod;

	constexpr MgmtClass cls() const { return static_cast<MgmtClass>(mgmt_class); }
	/* A response by its method; TrapRepress counts too, as it answers a Trap (IBA 13.4.6.4). */
	constexpr bool is_response() const
	{
		return (method & mad_response_bit) != 0 ||
		       method == static_cast<std::uint8_t>(MadMethod::trap_repress);
	}
	constexpr bool is_method(MadMethod m) const
	{
		return method == static_cast<std::uint8_t>(m);
	}
	constexpr bool is_smp() const
	{
		return cls() == MgmtClass::subn_lid_routed ||
		       cls() == MgmtClass::subn_directed_route;
	}
};
static_assert(sizeof(MadHeader) == 24 && offsetof(MadHeader, tid) == 8 &&
	      offsetof(MadHeader, attr_mod) == 20);

/* A MAD of any class. */
struct Mad {
	MadHeader header;
	std::uint8_t data[mad_bytes - sizeof(MadHeader)];
};
static_assert(sizeof(Mad) == mad_bytes && alignof(Mad) == 1);

constexpr unsigned smp_data_bytes = 64;
constexpr unsigned smp_path_max = 64;

/*
 * A subnet management packet of either class, IBA 14.2.1. The LID-routed class has no DrSLID,
 * DrDLID and paths: those bytes are reserved there. Entry 0 of both paths is unused.
 */
struct Smp {
	MadHeader header;
	be64 mkey;
	be16 dr_slid;
	be16 dr_dlid;
	std::uint8_t reserved[28];
	std::uint8_t data[smp_data_bytes];
	std::uint8_t initial_path[smp_path_max];
	std::uint8_t return_path[smp_path_max];

	constexpr bool returning() const
	{
		return (header.status.value() & mad_status_direction) != 0;
	}
};
static_assert(sizeof(Smp) == mad_bytes && offsetof(Smp, data) == 64 &&
	      offsetof(Smp, initial_path) == 128 && offsetof(Smp, return_path) == 192);

/* RMPP header, IBA 13.6.2. */
struct RmppHeader {
	std::uint8_t version;
	std::uint8_t type;
	std::uint8_t time_flags;
	std::uint8_t status;
	be32 segment;
	/* DATA: payload length; ACK: new window last. */
	be32 length_or_window;

	enum Type : std::uint8_t { data = 1, ack = 2, stop = 3, abort = 4 };
	enum Flag : std::uint8_t { active = 1, first = 2, last = 4 };
	static constexpr std::uint8_t current_version = 1;
	static constexpr std::uint8_t no_response_time = 0x1f;

	constexpr std::uint8_t flags() const { return field_get<2, 0>(time_flags); }
	constexpr std::uint8_t response_time() const { return field_get<7, 3>(time_flags); }
	static constexpr std::uint8_t make_time_flags(unsigned time, unsigned flags)
	{
		return static_cast<std::uint8_t>(time << 3 | (flags & 7));
	}
};
static_assert(sizeof(RmppHeader) == 12);

/* RMPP status of STOP and ABORT, IBA 13.6.2.3. */
enum RmppStatus : std::uint8_t {
	rmpp_status_normal = 0,
	rmpp_status_resources_exhausted = 1,
	rmpp_status_total_time_too_long = 118,
	rmpp_status_inconsistent_last_and_length = 119,
	rmpp_status_inconsistent_first_and_segment = 120,
	rmpp_status_bad_type = 121,
	rmpp_status_new_window_too_small = 122,
	rmpp_status_segment_too_big = 123,
	rmpp_status_illegal = 124,
	rmpp_status_unsupported_version = 125,
	rmpp_status_too_many_retries = 126,
	rmpp_status_unspecified = 127,
};

constexpr unsigned rmpp_mad_data_bytes = mad_bytes - sizeof(MadHeader) - sizeof(RmppHeader);
static_assert(rmpp_mad_data_bytes == 220);

constexpr std::uint8_t sa_class_version = 2;
constexpr unsigned sa_data_bytes = 200;

/* A subnet administration MAD, IBA 15.2.1.1. */
struct SaMad {
	MadHeader header;
	RmppHeader rmpp;
	be64 sm_key;
	be16 attr_offset;
	be16 reserved;
	be64 component_mask;
	std::uint8_t data[sa_data_bytes];
};
static_assert(sizeof(SaMad) == mad_bytes && offsetof(SaMad, data) == 56 &&
	      offsetof(SaMad, component_mask) == 48);

/* A performance management MAD, IBA 16.1.1. */
struct PerfMad {
	MadHeader header;
	std::uint8_t reserved[40];
	std::uint8_t data[192];
};
static_assert(sizeof(PerfMad) == mad_bytes && offsetof(PerfMad, data) == 64);

/* A vendor MAD of the second range (classes 30h-4Fh): RMPP header and OUI, IBA 16.5.1. */
struct VendorMad {
	MadHeader header;
	RmppHeader rmpp;
	std::uint8_t reserved;
	be24 oui;
	std::uint8_t data[216];
};
static_assert(sizeof(VendorMad) == mad_bytes && offsetof(VendorMad, data) == 40);

/* ClassPortInfo, IBA 13.4.8.1. */
struct ClassPortInfo {
	std::uint8_t base_version;
	std::uint8_t class_version;
	be16 capability_mask;
	/* CapabilityMask2 in bits 31..5, RespTimeValue in 4..0. */
	be32 capability2_resp_time;
	Gid redirect_gid;
	be32 redirect_tc_sl_flow;
	be16 redirect_lid;
	be16 redirect_pkey;
	be32 redirect_qp;
	be32 redirect_qkey;
	Gid trap_gid;
	be32 trap_tc_sl_flow;
	be16 trap_lid;
	be16 trap_pkey;
	be32 trap_hl_qp;
	be32 trap_qkey;
};
static_assert(sizeof(ClassPortInfo) == 72 && offsetof(ClassPortInfo, trap_gid) == 40);

/* Notice, IBA 13.4.8.2. */
struct Notice {
	/* IsGeneric in bit 7, type in 6..0. */
	std::uint8_t generic_type;
	/* Node type of the producer (generic) or vendor id. */
	be24 producer;
	/* Trap number (generic) or device id. */
	be16 trap_number;
	be16 issuer_lid;
	/* NoticeToggle in bit 15, NoticeCount below. */
	be16 toggle_count;
	std::uint8_t details[54];
	Gid issuer_gid;

	static constexpr std::uint8_t generic_bit = 0x80;
	constexpr bool is_generic() const { return (generic_type & generic_bit) != 0; }
	constexpr std::uint8_t type() const { return field_get<6, 0>(generic_type); }
};
static_assert(sizeof(Notice) == 80 && offsetof(Notice, details) == 10 &&
	      offsetof(Notice, issuer_gid) == 64);
/* Bytes that fit in the data of an SMP: the issuer GID is cut off there. */
constexpr unsigned notice_smp_bytes = 64;

enum class NoticeType : std::uint8_t {
	fatal = 0,
	urgent = 1,
	security = 2,
	subnet_management = 3,
	informational = 4,
	empty = 0x7f,
};

/* Traps of subnet management, IBA 14.2.5.1. */
enum TrapNumber : std::uint16_t {
	trap_gid_in_service = 64,
	trap_gid_out_of_service = 65,
	trap_mcast_group_created = 66,
	trap_mcast_group_deleted = 67,
	trap_unpath = 68,
	trap_repath = 69,
	trap_link_state_change = 128,
	trap_local_link_integrity = 129,
	trap_buffer_overrun = 130,
	trap_flow_control_watchdog = 131,
	trap_capability_change = 144,
	trap_system_image_guid_change = 145,
	trap_bad_mkey = 256,
	trap_bad_pkey = 257,
	trap_bad_qkey = 258,
	trap_switch_bad_pkey = 259,
};

/* InformInfo, IBA 13.4.8.3. */
struct InformInfo {
	Gid gid;
	be16 lid_begin;
	be16 lid_end;
	be16 reserved1;
	std::uint8_t is_generic;
	std::uint8_t subscribe;
	be16 type;
	be16 trap_number;
	/* QPN in bits 31..8, RespTimeValue in 4..0. */
	be32 qpn_resp_time;
	std::uint8_t reserved2;
	be24 producer;

	static constexpr std::uint16_t any = 0xffff;
	static constexpr std::uint32_t any_producer = 0xffffff;
};
static_assert(sizeof(InformInfo) == 36 && offsetof(InformInfo, qpn_resp_time) == 28);

} // namespace ib
