// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Answers requests to subnet administration for path records. */
#pragma once

#include <memory>

#include "sm/config.hpp"
#include "sm/mc_groups.hpp"
#include "sm/query.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/* Limit of port pairs of one request. It exceeds what clients need. */
constexpr std::size_t kPathPairsMax = 262144;

/*
 * Answers a request with the matching PathRecords (IBA 15.2.5.16). @requester is the sender's port.
 * A Get without a source is about that port. Ports that cannot match are excluded before any route
 * is followed. A request that still covers too many pairs is refused.
 */
Query find_paths(std::shared_ptr<const Subnet> subnet, const Config &config, const McGroups &groups,
		 const ib::SaMad &mad, PortRef requester);

} // namespace weft::sm
