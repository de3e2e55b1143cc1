// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Answers requests for path records. */
#pragma once

#include <memory>

#include "sm/config.hpp"
#include "sm/mc_groups.hpp"
#include "sm/query.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/* Pairs of ports that one request may cover. A client has no use for more. */
constexpr std::size_t kPathPairsMax = 262144;

/*
 * PathRecords that match a request, IBA 15.2.5.16. @requester: where it came from; a Get without a
 * source is about that port. Ports that no record can be about are sorted out before any route is
 * walked; a request that covers too many pairs all the same is refused.
 */
Query find_paths(std::shared_ptr<const Subnet> subnet, const Config &config, const McGroups &groups,
		 const ib::SaMad &mad, PortRef requester);

} // namespace weft::sm
