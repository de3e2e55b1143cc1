// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "attach/claim.hpp"

#include <cerrno>

#include "attach/mad_class.hpp"

namespace weft::attach
{

namespace
{

// Limits of the classes and versions that the kernel's MAD layer supports.
constexpr std::uint8_t kClassEnd = 0x50;
constexpr std::uint8_t kVersionEnd = 8;

bool is_smp_class(std::uint8_t mgmt_class)
{
	return mgmt_class == static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed) ||
	       mgmt_class == static_cast<std::uint8_t>(ib::MgmtClass::subn_directed_route);
}

} // namespace

int Claim::check(const AgentRequest &request)
{
	if (request.qpn > ib::qpn_gsi || (request.flags & ~kUserRmpp) != 0 ||
	    request.rmpp_version > ib::RmppHeader::current_version)
		return EINVAL;
	if (request.mgmt_class == 0)
		return 0;
	const bool smp = is_smp_class(request.mgmt_class);
	const bool user_rmpp = (request.flags & kUserRmpp) != 0;
	if (smp != (request.qpn == ib::qpn_smi) || request.mgmt_class_version >= kVersionEnd ||
	    (!smp && request.mgmt_class >= kClassEnd) || request.oui > 0xffffff ||
	    (is_vendor_range2(request.mgmt_class) && request.oui == 0) ||
	    (!has_rmpp(request.mgmt_class) && (request.rmpp_version != 0 || user_rmpp)))
		return EINVAL;
	return 0;
}

Claim Claim::of(const AgentRequest &request)
{
	Claim claim;
	claim.qpn = request.qpn;
	claim.mgmt_class = request.mgmt_class;
	claim.mgmt_class_version = request.mgmt_class_version;
	claim.oui = is_vendor_range2(request.mgmt_class) ? request.oui : 0;
	claim.methods = {request.method_mask[0], request.method_mask[1]};
	return claim;
}

bool Claim::overlaps(const Claim &other) const
{
	return mgmt_class != 0 && mgmt_class == other.mgmt_class &&
	       mgmt_class_version == other.mgmt_class_version && oui == other.oui &&
	       ((methods[0] & other.methods[0]) | (methods[1] & other.methods[1])) != 0;
}

bool Claim::wants(const ib::Mad &mad, std::uint32_t to, bool either_smp) const
{
	const std::uint8_t its = mad.header.mgmt_class;
	const bool same =
		its == mgmt_class || (either_smp && is_smp_class(its) && is_smp_class(mgmt_class));
	if (mgmt_class == 0 || to != qpn || !same ||
	    mad.header.class_version != mgmt_class_version || !has_method(mad.header.method & 0x7f))
		return false;
	return !is_vendor_range2(its) || reinterpret_cast<const ib::VendorMad &>(mad).oui == oui;
}

} // namespace weft::attach
