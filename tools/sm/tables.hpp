// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include "sm/config.hpp"
#include "sm/mad_client.hpp"
#include "sm/records.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * The records that mirror what the sweep found: nodes, ports, links, switches and their tables
 * (IBA 15.2.5.2 to 15.2.5.18). True if the attribute is one of them.
 * @trusted: the requester knows the SM_Key; others do not see M_Keys.
 */
bool query_table(const Subnet &subnet, const Config &config, ib::SmState state,
		 const ib::SaMad &mad, bool trusted, RecordSet &answer);

} // namespace weft::sm
