// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Stores the services that nodes have registered, and their leases (IBA 15.2.5.14). */
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>

#include "sm/due_index.hpp"
#include "sm/mad_client.hpp"
#include "sm/query.hpp"
#include "sm/requester.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

class Services
{
public:
	/*
	 * Maximum number of services of one port, out of 65,536 in total, so that no port can use
	 * up all.
	 */
	static constexpr std::size_t kServicesOfOne = 1024;

	/* Handle Set, Delete, Get and GetTable of ServiceRecord. */
	RecordSet add(const Requester &requester, const ib::SaMad &mad, Clock::time_point now);
	RecordSet remove(const Requester &requester, const ib::SaMad &mad);
	Query query(const ib::SaMad &mad) const;
	/* Also removes services whose port has disappeared. */
	void subnet_changed(const Subnet &subnet);
	/* Removes services whose lease has expired. */
	void run(Clock::time_point now, Work &work);
	/* Returns when the first lease expires. */
	Clock::time_point due() const { return due_.first(); }
	std::size_t size() const { return services_.size(); }

private:
	struct Service {
		ib::ServiceRecord record;
		Clock::time_point expires;
	};
	/*
	 * Identity of a record: GID, service ID and P_Key. Records of a port are adjacent.
	 */
	using Identity = std::tuple<ib::Guid, ib::Gid, std::uint64_t, std::uint16_t>;
	static Identity identity(const ib::ServiceRecord &record);
	bool may_add(const ib::ServiceRecord &record) const;

	std::map<Identity, Service>::iterator erase(std::map<Identity, Service>::iterator service);

	std::map<Identity, Service> services_;
	std::unordered_map<ib::Guid, std::size_t> counts_;
	DueIndex<Identity> due_;
};

} // namespace weft::sm
