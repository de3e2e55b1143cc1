// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * What every node's subnet management agent does with an SMP whatever the node is (IBA 14.2): which
 * are for it, how attributes lie in them, and what makes an answer of them. What a Set(PortInfo)
 * may ask is in port_info_rules.hpp, who may ask in mkey_guard.hpp.
 */
#pragma once

#include <cstdint>
#include <cstring>

#include <ib/smp.hpp>

namespace weft::fabric
{

enum class SmpRequest : std::uint8_t {
	/* Nothing for the agent: responses, traps, what the manager of the node is asked. */
	foreign,
	/* It is answered, but for the sake of its status alone. */
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

/* Turns a Get or Set into its answer, without direction bit. */
inline void make_answer(ib::MadHeader &header, std::uint16_t status)
{
	header.method = static_cast<std::uint8_t>(ib::MadMethod::get_resp);
	header.status = status;
}

/* An attribute is all of an SMP's data: behind it is zero. */
template<class Attribute>
void put_attribute(ib::Smp &smp, const Attribute &attribute)
{
	std::memset(smp.data, 0, sizeof(smp.data));
	ib::smp_attribute<Attribute>(smp) = attribute;
}

} // namespace weft::fabric
