// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/port.hpp"

#include <algorithm>

namespace weft::hca
{

namespace
{

// The counter saturates (IBA 14.2.5.6).
void count(ib::be16 &counter)
{
	if (counter != 0xffff)
		counter = static_cast<std::uint16_t>(counter + 1);
}

fabric::ManagedPort at_power_on(unsigned number, ib::Guid guid, const CardPort::Limits &limits)
{
	return fabric::ManagedPort({.number = number,
				    .guid = guid,
				    .capability_mask = CardPort::kDefaultCapabilities,
				    .mtu = limits.mtu,
				    .vl_cap = CardPort::kVlCap,
				    .pkey_entries = limits.pkeys});
}

} // namespace

CardPort::CardPort(unsigned number, ib::Guid guid, fabric::Port &fabric_port, const Limits &limits)
    : number_(number), original_guid_(guid), limits_(limits), fabric_port_(fabric_port),
      managed_(at_power_on(number, guid, limits))
{
}

void CardPort::reset()
{
	managed_ = at_power_on(number_, original_guid_, limits_);
	set_driver_capabilities(info().capability_mask);
	fabric_port_.enable_rates({});
	opened_ = false;
}

bool CardPort::set_driver_capabilities(std::uint32_t mask)
{
	driver_is_sm_ = mask & ib::port_cap_is_sm;
	return update_capabilities(mask);
}

bool CardPort::set_program_is_sm(bool is_sm)
{
	program_is_sm_ = is_sm;
	return update_capabilities(info().capability_mask);
}

bool CardPort::update_capabilities(std::uint32_t mask)
{
	mask &= ~std::uint32_t{ib::port_cap_is_sm};
	if (driver_is_sm_ || program_is_sm_)
		mask |= ib::port_cap_is_sm;
	const bool changes = info().capability_mask != mask;
	info().capability_mask = mask;
	return changes;
}

int CardPort::find_pkey(std::uint16_t pkey) const
{
	const auto &pkeys = managed_.pkeys;
	const auto found = std::ranges::find_if(
		pkeys, [pkey](std::uint16_t own) { return ib::pkey_match(own, pkey); });
	return found == pkeys.end() ? -1 : static_cast<int>(found - pkeys.begin());
}

bool CardPort::owns_gid(const ib::Gid &gid) const
{
	// The default prefix is always accepted (IBA 4.1.1).
	if (gid.subnet_prefix() != info().gid_prefix &&
	    gid.subnet_prefix() != ib::gid_prefix_link_local)
		return false;
	return gid.interface_id() != 0 && std::ranges::any_of(managed_.guids, [&gid](ib::Guid own) {
		       return own == gid.interface_id();
	       });
}

void CardPort::count_pkey_violation()
{
	count(info().pkey_violations);
}

void CardPort::count_qkey_violation()
{
	count(info().qkey_violations);
}

} // namespace weft::hca
