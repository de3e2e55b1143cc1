// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the handling of SMPs that all subnet management agents share (IBA 14.2): it determines
 * which SMPs are requests to the agent, reads and writes attributes in SMPs, and turns a request
 * into its response. port_info_rules.hpp checks the values of a Set(PortInfo), mkey_guard.hpp the
 * M_Key.
 */
#pragma once

#include <cstdint>
#include <cstring>

#include <ib/smp.hpp>

namespace weft::fabric
{

enum class SmpRequest : std::uint8_t {
	/* Not for the agent: a response, a trap, or a request to the subnet manager on the node. */
	foreign,
	/* Answered with an error status. */
	bad_version,
	get,
	set,
	trap_repress,
};

inline SmpRequest smp_request(const ib::MadHeader &header)
{
	const bool get = header.is_method(ib::MadMethod::get);
	const bool set = header.is_method(ib::MadMethod::set);
	const bool repress = header.is_method(ib::MadMethod::trap_repress);
	if ((!get && !set && !repress) || header.attr_id == ib::attr_sm_info)
		return SmpRequest::foreign;
	if (header.base_version != ib::mad_base_version || header.class_version != 1)
		return repress ? SmpRequest::foreign : SmpRequest::bad_version;
	return get ? SmpRequest::get : set ? SmpRequest::set : SmpRequest::trap_repress;
}

/* Turns a Get or Set into its response, without direction bit. */
inline void make_answer(ib::MadHeader &header, std::uint16_t status)
{
	header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
	header.status = status;
}

/* Stores an attribute in an SMP, and clears the rest of the data. */
template<class Attribute>
void put_attribute(ib::Smp &smp, const Attribute &attribute)
{
	std::memset(smp.data, 0, sizeof(smp.data));
	ib::smp_attribute<Attribute>(smp) = attribute;
}

} // namespace weft::fabric
