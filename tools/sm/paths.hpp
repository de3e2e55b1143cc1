// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#pragma once

#include "sm/config.hpp"
#include "sm/mc_groups.hpp"
#include "sm/records.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/*
 * PathRecord, IBA 15.2.5.16: the paths that a request describes. What it leaves open is every end
 * port; a Get that names no source means the requester.
 */
RecordSet find_paths(const Subnet &subnet, const Config &config, const McGroups &groups,
		     const ib::SaMad &mad, PortRef requester);

} // namespace weft::sm
