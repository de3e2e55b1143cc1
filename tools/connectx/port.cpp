// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "connectx/port.hpp"

#include <algorithm>

namespace weft::connectx
{

namespace
{

// Sticks at its maximum (IBA 14.2.5.6).
void count(ib::be16 &counter)
{
	if (counter != 0xffff)
		counter = static_cast<std::uint16_t>(counter + 1);
}

} // namespace

CardPort::CardPort(unsigned number, ib::Guid guid, fabric::Port &fabric_port)
    : number_(number), fabric_port_(fabric_port)
{
	guids_[0] = guid;
	reset();
}

void CardPort::reset()
{
	info_ = {};
	info_.gid_prefix = ib::gid_prefix_link_local;
	info_.capability_mask = kDefaultCapabilities;
	info_.local_port = static_cast<std::uint8_t>(number_);
	info_.link_width_enabled = ib::width_1x | ib::width_4x;
	info_.link_width_supported = ib::width_1x | ib::width_4x;
	info_.link_width_active = ib::width_4x;
	info_.set_speed_supported(ib::speed_sdr | ib::speed_ddr | ib::speed_qdr);
	info_.set_speed_enabled(ib::speed_sdr | ib::speed_ddr | ib::speed_qdr);
	info_.set_speed_active(ib::speed_qdr);
	info_.set_state(ib::PortState::down);
	info_.set_phys_state(ib::PhysState::polling);
	info_.set_down_default(static_cast<unsigned>(ib::PhysState::polling));
	info_.set_neighbor_mtu(kMaxMtu);
	info_.set_mtu_cap(kMaxMtu);
	info_.set_vl_cap(kVlCap);
	info_.set_operational_vls(1);
	info_.vl_arb_high_cap = 8;
	info_.vl_arb_low_cap = 8;
	info_.guid_cap = kGids;
	info_.set_subnet_timeout(18);
	info_.resp_time = 16;
	info_.phys_overrun_errors = 0x88;

	std::fill(guids_.begin() + 1, guids_.end(), ib::Guid{0});
	pkeys_.fill(0);
	pkeys_[0] = ib::pkey_default_full;
	sl_to_vl_ = {};
	vl_arbitration_ = {};
	// The two tables of low and high priority: all weight to VL 0.
	vl_arbitration_[0].entry[0] = {0, 64};
	vl_arbitration_[2].entry[0] = {0, 64};
	opened_ = false;
}

int CardPort::find_pkey(std::uint16_t pkey) const
{
	const auto found = std::ranges::find_if(
		pkeys_, [pkey](std::uint16_t own) { return ib::pkey_match(own, pkey); });
	return found == pkeys_.end() ? -1 : static_cast<int>(found - pkeys_.begin());
}

bool CardPort::owns_gid(const ib::Gid &gid) const
{
	// The default prefix always works (IBA 4.1.1).
	if (gid.subnet_prefix() != info_.gid_prefix &&
	    gid.subnet_prefix() != ib::gid_prefix_link_local)
		return false;
	return gid.interface_id() != 0 &&
	       std::ranges::find(guids_, gid.interface_id()) != guids_.end();
}

void CardPort::count_pkey_violation()
{
	count(info_.pkey_violations);
}

void CardPort::count_qkey_violation()
{
	count(info_.qkey_violations);
}

} // namespace weft::connectx
