// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the properties of management classes that decide how a MAD is sent and which agent
// receives it (IBA 13.4).
#pragma once

#include <cstddef>
#include <cstdint>

#include <ib/mad.hpp>

namespace weft::attach
{

constexpr bool is_vendor_range2(std::uint8_t mgmt_class)
{
	return mgmt_class >= static_cast<std::uint8_t>(ib::MgmtClass::vendor_range2_first) &&
	       mgmt_class <= static_cast<std::uint8_t>(ib::MgmtClass::vendor_range2_last);
}

// Returns true if MADs of the class have an RMPP header.
constexpr bool has_rmpp(std::uint8_t mgmt_class)
{
	switch (static_cast<ib::MgmtClass>(mgmt_class)) {
	case ib::MgmtClass::subn_adm:
	case ib::MgmtClass::device_mgmt:
	case ib::MgmtClass::dev_adm:
	case ib::MgmtClass::boot_mgt:
	case ib::MgmtClass::bis:
		return true;
	default:
		return is_vendor_range2(mgmt_class);
	}
}

// Returns the length of all headers before the data, which each segment of an RMPP message repeats.
constexpr std::size_t header_bytes(std::uint8_t mgmt_class)
{
	if (static_cast<ib::MgmtClass>(mgmt_class) == ib::MgmtClass::subn_adm)
		return offsetof(ib::SaMad, data);
	if (is_vendor_range2(mgmt_class))
		return offsetof(ib::VendorMad, data);
	return has_rmpp(mgmt_class) ? 64 : sizeof(ib::MadHeader);
}

// Returns the number of header bytes that belong to the class itself and count as RMPP payload.
constexpr std::uint32_t class_header_bytes(std::uint8_t mgmt_class)
{
	return static_cast<std::uint32_t>(header_bytes(mgmt_class) - sizeof(ib::MadHeader) -
					  sizeof(ib::RmppHeader));
}

inline const ib::RmppHeader &rmpp_of(const ib::Mad &mad)
{
	return *reinterpret_cast<const ib::RmppHeader *>(mad.data);
}

inline ib::RmppHeader &rmpp_of(ib::Mad &mad)
{
	return *reinterpret_cast<ib::RmppHeader *>(mad.data);
}

inline bool is_rmpp_active(const ib::Mad &mad)
{
	return has_rmpp(mad.header.mgmt_class) &&
	       (rmpp_of(mad).flags() & ib::RmppHeader::active) != 0;
}

} // namespace weft::attach
