// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/fabric/mkey_guard.hpp"

namespace weft::fabric
{

namespace
{

/* Lowest protection level at which reads require the M_Key, too (IBA table 144). */
constexpr unsigned kProtectReading = 2;

} // namespace

bool MkeyGuard::admits(ib::PortInfo &info, const ib::Smp &smp, bool own, TimePoint now)
{
	if (lease_end_ && *lease_end_ <= now) {
		lease_end_.reset();
		info.set_mkey_protect(0);
	}
	if (info.mkey == std::uint64_t{0} || info.mkey == smp.mkey) {
		lease_end_.reset();
		return true;
	}
	if (smp.header.is_method(ib::MadMethod::get) &&
	    (own || info.mkey_protect() < kProtectReading))
		return true;
	/* The counter saturates (IBA 14.2.5.6). */
	if (info.mkey_violations != 0xffff)
		info.mkey_violations = static_cast<std::uint16_t>(info.mkey_violations + 1);
	/* A lease period of zero means that the protection never ends. */
	if (!lease_end_ && info.mkey_lease_period != 0)
		lease_end_ = now + std::chrono::seconds(info.mkey_lease_period.value());
	return false;
}

void MkeyGuard::conceal(ib::PortInfo &info, ib::be64 key)
{
	if (info.mkey_protect() != 0 && info.mkey != key)
		info.mkey = std::uint64_t{0};
}

} // namespace weft::fabric
