// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines the attributes of performance management (IBA 16.1.3). Each attribute begins at the start
 * of PerfMad::data.
 */
#pragma once

#include "mad.hpp"

namespace ib
{

enum PerfAttribute : std::uint16_t {
	attr_port_samples_control = 0x0010,
	attr_port_samples_result = 0x0011,
	attr_port_counters = 0x0012,
	attr_port_rcv_error_details = 0x0015,
	attr_port_xmit_discard_details = 0x0016,
	attr_port_counters_extended = 0x001d,
};

constexpr std::uint8_t perf_class_version = 1;

/* Bits of ClassPortInfo.CapabilityMask of this class, IBA 16.1.3.1. */
enum PerfCapability : std::uint16_t {
	perf_cap_all_port_select = 1u << 8,
	perf_cap_extended_width = 1u << 9,
	perf_cap_extended_width_no_ietf = 1u << 10,
	perf_cap_xmit_wait = 1u << 12,
};
constexpr std::uint8_t perf_all_ports = 0xff;

/* IBA 16.1.3.5. Counters stick at their maximum. Data counters count words of four bytes. */
struct PortCounters {
	std::uint8_t reserved1;
	std::uint8_t port_select;
	be16 counter_select;
	be16 symbol_errors;
	std::uint8_t link_error_recovery;
	std::uint8_t link_downed;
	be16 rcv_errors;
	be16 rcv_remote_physical_errors;
	be16 rcv_switch_relay_errors;
	be16 xmit_discards;
	std::uint8_t xmit_constraint_errors;
	std::uint8_t rcv_constraint_errors;
	std::uint8_t counter_select2;
	/* LocalLinkIntegrityErrors in 7..4, ExcessiveBufferOverrunErrors in 3..0. */
	std::uint8_t integrity_overrun;
	be16 reserved2;
	be16 vl15_dropped;
	be32 xmit_data;
	be32 rcv_data;
	be32 xmit_packets;
	be32 rcv_packets;
	be32 xmit_wait;
};
static_assert(sizeof(PortCounters) == 44 && offsetof(PortCounters, vl15_dropped) == 22 &&
	      offsetof(PortCounters, xmit_wait) == 40);

/* Bits of PortCounters.CounterSelect. */
enum PortCounterSelect : std::uint16_t {
	select_symbol_errors = 1u << 0,
	select_link_error_recovery = 1u << 1,
	select_link_downed = 1u << 2,
	select_rcv_errors = 1u << 3,
	select_rcv_remote_physical_errors = 1u << 4,
	select_rcv_switch_relay_errors = 1u << 5,
	select_xmit_discards = 1u << 6,
	select_xmit_constraint_errors = 1u << 7,
	select_rcv_constraint_errors = 1u << 8,
	select_local_link_integrity = 1u << 9,
	select_buffer_overrun = 1u << 10,
	select_vl15_dropped = 1u << 11,
	select_xmit_data = 1u << 12,
	select_rcv_data = 1u << 13,
	select_xmit_packets = 1u << 14,
	select_rcv_packets = 1u << 15,
};
constexpr std::uint8_t select2_xmit_wait = 1u << 0;

/* IBA 16.1.4.11. */
struct PortCountersExtended {
	std::uint8_t reserved1;
	std::uint8_t port_select;
	be16 counter_select;
	be32 counter_select2;
	be64 xmit_data;
	be64 rcv_data;
	be64 xmit_packets;
	be64 rcv_packets;
	be64 unicast_xmit_packets;
	be64 unicast_rcv_packets;
	be64 multicast_xmit_packets;
	be64 multicast_rcv_packets;
};
static_assert(sizeof(PortCountersExtended) == 72 && offsetof(PortCountersExtended, xmit_data) == 8);

/* Bits of PortCountersExtended.CounterSelect, in the order of the fields. */
enum ExtendedCounterSelect : std::uint16_t {
	select_ext_xmit_data = 1u << 0,
	select_ext_rcv_data = 1u << 1,
	select_ext_xmit_packets = 1u << 2,
	select_ext_rcv_packets = 1u << 3,
	select_ext_unicast_xmit = 1u << 4,
	select_ext_unicast_rcv = 1u << 5,
	select_ext_multicast_xmit = 1u << 6,
	select_ext_multicast_rcv = 1u << 7,
};

} // namespace ib
