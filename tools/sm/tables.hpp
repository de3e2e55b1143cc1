// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Answers requests to subnet administration for the records of nodes, ports, links and switches. */
#pragma once

#include <memory>
#include <optional>

#include "sm/config.hpp"
#include "sm/configurator.hpp"
#include "sm/query.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/* Sources of the records. */
struct TableSources {
	std::shared_ptr<const Subnet> subnet;
	const Configurator &configurator;
	const Config &config;
};

/*
 * Answers requests for records of data that a sweep has read or written: nodes, ports, links,
 * switches and their tables (IBA 15.2.5.2 to 15.2.5.18). Returns nothing for other attributes.
 * @trusted: the requester knows the SM_Key; other requesters do not see M_Keys.
 */
std::optional<Query> query_table(const TableSources &from, const ib::SaMad &mad, bool trusted);

} // namespace weft::sm
