// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/managed_port.hpp"

namespace weft::fabric
{

ManagedPort::ManagedPort(const Config &config)
    : kind(config.kind),
      pkeys((config.pkey_entries + kPkeysPerBlock - 1) / kPkeysPerBlock * kPkeysPerBlock)
{
	constexpr unsigned speeds = ib::speed_sdr | ib::speed_ddr | ib::speed_qdr;
	constexpr std::uint8_t widths = ib::width_1x | ib::width_4x;

	pkeys[0] = ib::pkey_default_full;
	if (kind != PortKind::switch_external) {
		guids[0] = config.guid;
		info.gid_prefix = ib::gid_prefix_link_local;
		info.capability_mask = config.capability_mask;
		info.guid_cap = kGuidsPerBlock;
		info.set_subnet_timeout(18);
		info.resp_time = 16;
	}
	info.local_port = static_cast<std::uint8_t>(config.number);
	info.link_width_enabled = widths;
	info.link_width_supported = widths;
	info.link_width_active = ib::width_4x;
	info.set_speed_supported(speeds);
	info.set_speed_enabled(speeds);
	info.set_speed_active(ib::speed_qdr);
	info.set_state(ib::PortState::down);
	info.set_phys_state(ib::PhysState::polling);
	if (kind == PortKind::switch_management) {
		/* A base switch port 0 has no link of its own, IBA 14.2.5.6. */
		info.set_state(ib::PortState::active);
		info.set_phys_state(ib::PhysState::link_up);
	}
	info.set_down_default(static_cast<unsigned>(ib::PhysState::polling));
	info.set_neighbor_mtu(config.mtu);
	info.set_mtu_cap(config.mtu);
	info.set_vl_cap(config.vl_cap);
	info.set_operational_vls(1);
	info.vl_arb_high_cap = 8;
	info.vl_arb_low_cap = 8;
	info.phys_overrun_errors = 0x88;
	/* The first blocks of the low and high priority tables give all weight to VL 0. */
	vl_arbitration[0].entry[0] = {0, 64};
	vl_arbitration[2].entry[0] = {0, 64};
}

} // namespace weft::fabric
