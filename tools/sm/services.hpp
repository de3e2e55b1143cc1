// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Services that nodes have registered, with their leases, IBA 15.2.5.14.
 */
#pragma once

#include <list>

#include "sm/mad_client.hpp"
#include "sm/records.hpp"
#include "sm/requester.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

class Services
{
public:
	/* Set, Delete, Get and GetTable of ServiceRecord. */
	RecordSet add(const Requester &requester, const ib::SaMad &mad, Clock::time_point now);
	RecordSet remove(const Requester &requester, const ib::SaMad &mad);
	RecordSet query(const ib::SaMad &mad) const;
	/* Those whose port is gone go too. */
	void subnet_changed(const Subnet &subnet);
	void tick(Clock::time_point now);
	std::size_t size() const { return services_.size(); }

private:
	struct Service {
		ib::ServiceRecord record;
		Clock::time_point expires;
	};
	/* The record that has the same identity: service id, GID and P_Key. */
	std::list<Service>::iterator find(const ib::ServiceRecord &record);

	std::list<Service> services_;
};

} // namespace weft::sm
