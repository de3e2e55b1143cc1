// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Manages the multicast groups of the subnet and their members (IBA 15.2.5.17). */
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "sm/config.hpp"
#include "sm/configurator.hpp"
#include "sm/mlid_pool.hpp"
#include "sm/query.hpp"
#include "sm/requester.hpp"
#include "sm/source_log.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

class McGroups
{
public:
	/* Called with a group's GID when it is created (true) or deleted. */
	using Watcher = std::function<void(const ib::Gid &mgid, bool created)>;

	/*
	 * Maximum number of groups that one port may join, out of the 4,096 for which switches have
	 * tables. A group exists as long as it has a full member, so one port cannot keep more
	 * groups than this.
	 */
	static constexpr std::size_t kMembershipsOfOne = 512;

	McGroups(const Config &config, SourceLog &log, Watcher watcher);

	/* Handle Set, Delete, Get and GetTable of MCMemberRecord. @now is used for the log. */
	RecordSet join(const Subnet &subnet, const Requester &requester, const ib::SaMad &mad,
		       Clock::time_point now, Work &work);
	RecordSet leave(const Requester &requester, const ib::SaMad &mad, Work &work);
	Query query(const Requester &requester, const ib::SaMad &mad) const;

	/*
	 * Uses a new subnet: removes ports that have disappeared from their groups, and recomputes
	 * every tree.
	 */
	void subnet_changed(const Subnet &subnet);
	/*
	 * Returns the trees of groups whose members have changed since the last call, or of all
	 * groups after subnet_changed().
	 */
	std::vector<McRoute> take_changes(const Subnet &subnet);
	std::vector<McRoute> all_routes(const Subnet &subnet);
	bool changed() const { return !dirty_.empty(); }

	/*
	 * Copies the group's record without a member, for path records. Returns false if there is
	 * no such group.
	 */
	bool find(const ib::Gid &mgid, ib::McMemberRecord &record) const;
	std::size_t size() const { return groups_.size(); }

private:
	struct Member {
		std::uint8_t join_state = 0;
		/* True if a proxy has joined for the port. The proxy may then leave for it. */
		bool by_proxy = false;
	};
	struct Group {
		/* The record of the group. PortGID, JoinState and ProxyJoin are zero. */
		ib::McMemberRecord record{};
		/*
		 * The partition whose IPoIB broadcast group this is, or null. Broadcast groups are
		 * kept when they are empty.
		 */
		const Partition *broadcast_of = nullptr;
		/*
		 * For a broadcast group, the rate with which its first member has joined. That
		 * member may not know that the rate has decreased since.
		 */
		unsigned joined_rate = 0;
		/* Keyed by port GUID. */
		std::map<ib::Guid, Member> members;
		/* Number of full members, including send-only full members. */
		std::size_t full_members = 0;
	};
	using Groups = std::map<ib::Gid, Group>;

	/*
	 * Returns the rate of a partition's groups whose creator requests none: the configured
	 * rate, or otherwise the highest rate up to 10 Gb/s that the links of all members support.
	 */
	static ib::Rate rate_for(const Subnet &subnet, const Partition &partition);
	void adjust_rate(Group &group);
	ib::Rate usual_rate(const Partition &partition) const;
	Groups::iterator create(const Requester &requester, const ib::SaMad &mad,
				Clock::time_point now, std::uint16_t &status);
	void erase(Groups::iterator group);
	static bool is_full(const Member &member);
	/* Sets the join state of a member; 0 removes it. */
	void set_join_state(Group &group, std::map<ib::Guid, Member>::iterator member,
			    std::uint8_t join_state);
	/* Charges for writing a group's tree. */
	void charge_for_tree(const Group &group, Work &work) const;
	/* Returns the broadcast group of the IPoIB network to which a group belongs, or null. */
	const Group *network_of(const ib::Gid &mgid) const;
	/* Returns true if a new group belongs to no network, or has its network's parameters. */
	static bool is_of_its_network(const ib::McMemberRecord &record, const Group *network);
	/* Returns an MGID with the SA's own prefix that no group has (IBA 15.2.5.17.2). */
	ib::Gid unused_mgid(std::uint8_t scope, ib::Lid mlid) const;
	/* Returns true if the port is in the group, or may join another group. */
	bool may_join(ib::Guid port, const Group *group) const;
	/* Decrements the number of groups of the port. */
	void forget_membership(ib::Guid port);
	void remove_if_unused(Groups::iterator group);
	/* Returns the MLID for the next group, or 0 if the switches' tables are full. */
	ib::Lid free_mlid() const;
	bool port_can_join(const Subnet &subnet, PortRef port, const Group &group) const;
	bool request_fits(const ib::SaMad &mad, const Group &group) const;
	McRoute route_of(const Subnet &subnet, const Group &group) const;
	ib::McMemberRecord member_record(const Group &group, ib::Guid guid,
					 const Member &member) const;

	const Config &config_;
	SourceLog &log_;
	const Watcher watcher_;
	Groups groups_;
	std::unordered_map<ib::Lid, Groups::iterator> by_mlid_;
	/* Broadcast groups by the base of their P_Key. */
	std::unordered_map<ib::Pkey, const Group *> broadcasts_;
	/* Computed from the subnet by subnet_changed(). */
	std::unordered_map<const Partition *, ib::Rate> rates_;
	unsigned mlid_capacity_ = 0;
	std::size_t switches_ = 0;
	/* Number of groups of each port; ports without groups have no entry. */
	std::map<ib::Guid, std::size_t> memberships_;
	MlidPool mlids_;
	/* MLIDs of groups whose trees must be written, and of deleted groups. */
	std::set<ib::Lid> dirty_;
};

} // namespace weft::sm
