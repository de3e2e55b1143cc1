// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/mc_groups.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "sm/path_values.hpp"

namespace weft::sm
{

namespace
{

using ib::McMemberRecord;

/* Rate of groups if the links of all members support it. */
constexpr ib::Rate kDefaultRate = ib::Rate::gbps_10;

constexpr Field kMemberFields[] = {
	{McMemberRecord::c_mgid, 0, 128},        {McMemberRecord::c_qkey, 256, 32},
	{McMemberRecord::c_mlid, 288, 16},       {McMemberRecord::c_traffic_class, 312, 8},
	{McMemberRecord::c_pkey, 320, 16},       {McMemberRecord::c_sl, 352, 4},
	{McMemberRecord::c_flow_label, 356, 20}, {McMemberRecord::c_hop_limit, 376, 8},
	{McMemberRecord::c_scope, 384, 4},
};

/*
 * Returns the P_Key in the MGID of an IPoIB network (RFC 4391 section 4), for any scope and flags.
 */
std::optional<ib::Pkey> ipoib_pkey(const ib::Gid &mgid)
{
	const auto signature = static_cast<std::uint16_t>(mgid.subnet_prefix() >> 32);
	if (signature != ib::ipoib_signature_ipv4 && signature != ib::ipoib_signature_ipv6)
		return std::nullopt;
	return static_cast<ib::Pkey>(mgid.subnet_prefix() >> 16);
}

/*
 * Returns `preferred` if it meets a request's selector, and otherwise the value that the request
 * requires.
 */
unsigned choose(std::uint8_t byte, bool has_selector, bool has_value, unsigned preferred)
{
	if (!has_value)
		return preferred;
	unsigned wanted = ib::selected_value(byte);
	switch (has_selector ? ib::selector_of(byte) : ib::Selector::exactly) {
	case ib::Selector::greater:
		return preferred > wanted ? preferred : wanted + 1;
	case ib::Selector::less:
		return preferred < wanted ? preferred : wanted - 1;
	case ib::Selector::exactly:
		return wanted;
	case ib::Selector::largest:
		return preferred;
	}
	return preferred;
}

} // namespace

McGroups::McGroups(const Config &config, SourceLog &log, Watcher watcher)
    : config_(config), log_(log), watcher_(std::move(watcher))
{
	for (const Partition &partition : config_.partitions) {
		if (!partition.ipoib)
			continue;
		auto pkey = static_cast<ib::Pkey>(partition.pkey | ib::pkey_full_bit);
		Group group;
		group.broadcast_of = &partition;
		McMemberRecord &record = group.record;
		record.mgid = ib::ipoib_broadcast_gid(pkey, partition.scope);
		record.qkey = partition.qkey;
		record.mlid = mlids_.lowest();
		record.mtu_selector = ib::make_selected(ib::Selector::exactly,
							static_cast<unsigned>(partition.mtu));
		record.pkey = pkey;
		record.rate_selector = ib::make_selected(
			ib::Selector::exactly,
			static_cast<unsigned>(partition.rate.value_or(kDefaultRate)));
		record.lifetime_selector =
			ib::make_selected(ib::Selector::exactly, kPacketLifetime);
		record.set_sl_flow_hop(partition.sl, 0, 0);
		record.set_scope_join_state(partition.scope, 0);
		group.joined_rate = ib::selected_value(record.rate_selector);
		const auto [at, fresh] = groups_.emplace(record.mgid, std::move(group));
		if (!fresh)
			continue;
		mlids_.take_lowest();
		by_mlid_.emplace(at->second.record.mlid, at);
		broadcasts_.emplace(ib::pkey_base(pkey), &at->second);
	}
}

ib::Rate McGroups::rate_for(const Subnet &subnet, const Partition &partition)
{
	if (partition.rate)
		return *partition.rate;
	ib::Rate slowest = kDefaultRate;
	for (PortRef ref : subnet.end_ports) {
		const PortData &port = subnet.port(ref);
		bool member = std::any_of(port.pkeys.begin(), port.pkeys.end(), [&](ib::Pkey pkey) {
			return ib::pkey_base(pkey) == ib::pkey_base(partition.pkey);
		});
		ib::Rate link = ib::link_rate(port.info.link_width_active, port.info.speed_active(),
					      port.info.speed_ext_active());
		if (member && ib::rate_tenths(link) < ib::rate_tenths(slowest))
			slowest = link;
	}
	return slowest;
}

ib::Rate McGroups::usual_rate(const Partition &partition) const
{
	const auto found = rates_.find(&partition);
	return found == rates_.end() ? kDefaultRate : found->second;
}

ib::Lid McGroups::free_mlid() const
{
	const ib::Lid lowest = mlids_.lowest();
	return lowest - ib::lid_multicast_first < static_cast<int>(mlid_capacity_) ? lowest
										   : ib::Lid{0};
}

bool McGroups::port_can_join(const Subnet &subnet, PortRef ref, const Group &group) const
{
	const PortData &port = subnet.port(ref);
	ib::Pkey wanted = group.record.pkey;
	bool partition = std::any_of(port.pkeys.begin(), port.pkeys.end(),
				     [&](ib::Pkey pkey) { return ib::pkey_match(pkey, wanted); });
	auto mtu = static_cast<ib::Mtu>(ib::selected_value(group.record.mtu_selector));
	auto rate = static_cast<ib::Rate>(ib::selected_value(group.record.rate_selector));
	ib::Rate link = ib::link_rate(port.info.link_width_active, port.info.speed_active(),
				      port.info.speed_ext_active());
	return partition && port.info.neighbor_mtu() >= mtu &&
	       ib::rate_tenths(link) >= ib::rate_tenths(rate);
}

bool McGroups::request_fits(const ib::SaMad &mad, const Group &group) const
{
	const auto &wanted = record_of<McMemberRecord>(mad);
	const McMemberRecord &record = group.record;
	/* If a join contains an MLID, it must be that of the group. */
	if (!fields_match(kMemberFields,
			  mad.component_mask & ~ib::component(McMemberRecord::c_pkey), &wanted,
			  &record))
		return false;
	if (has_component(mad, McMemberRecord::c_pkey) &&
	    ib::pkey_base(wanted.pkey) != ib::pkey_base(record.pkey))
		return false;
	auto meets = [&](std::uint8_t request, std::uint8_t have, unsigned selector, unsigned value,
			 auto order) {
		return !has_component(mad, value) ||
		       selector_allows(request, has_component(mad, selector),
				       ib::selected_value(have), order);
	};
	return meets(wanted.mtu_selector, record.mtu_selector, McMemberRecord::c_mtu_selector,
		     McMemberRecord::c_mtu, plain_order) &&
	       meets(wanted.rate_selector, record.rate_selector, McMemberRecord::c_rate_selector,
		     McMemberRecord::c_rate, rate_order) &&
	       meets(wanted.lifetime_selector, record.lifetime_selector,
		     McMemberRecord::c_lifetime_selector, McMemberRecord::c_lifetime, plain_order);
}

ib::Gid McGroups::unused_mgid(std::uint8_t scope, ib::Lid mlid) const
{
	const auto prefix = 0xff10a01b00000000 | std::uint64_t{scope} << 48;
	std::uint64_t low = mlid;
	/*
	 * The loop ends, because hosts can create groups with MGIDs of this form, but not more than
	 * the maximum number of groups.
	 */
	while (groups_.contains(ib::Gid::from_parts(prefix, low)))
		low += std::uint64_t{1} << 16;
	return ib::Gid::from_parts(prefix, low);
}

bool McGroups::may_join(ib::Guid port, const Group *group) const
{
	if (group && group->members.contains(port))
		return true;
	const auto its = memberships_.find(port);
	return its == memberships_.end() || its->second < kMembershipsOfOne;
}

void McGroups::forget_membership(ib::Guid port)
{
	const auto its = memberships_.find(port);
	if (--its->second == 0)
		memberships_.erase(its);
}

const McGroups::Group *McGroups::network_of(const ib::Gid &mgid) const
{
	const auto pkey = ipoib_pkey(mgid);
	if (!pkey)
		return nullptr;
	const auto found = broadcasts_.find(ib::pkey_base(*pkey));
	return found == broadcasts_.end() ? nullptr : found->second;
}

/*
 * The hosts of an IPoIB network join its groups only with the parameters of its broadcast group
 * (RFC 4391 sections 5 and 6), so a group with other parameters would exclude them. The rate may be
 * one that the broadcast group had when a host joined it.
 */
bool McGroups::is_of_its_network(const McMemberRecord &record, const Group *network)
{
	const auto pkey = ipoib_pkey(record.mgid);
	if (pkey && ib::pkey_base(*pkey) != ib::pkey_base(record.pkey))
		return false;
	if (!network)
		return true;
	const McMemberRecord &broadcast = network->record;
	const unsigned rate = rate_order(ib::selected_value(record.rate_selector));
	return record.qkey == broadcast.qkey && record.mtu_selector == broadcast.mtu_selector &&
	       rate >= rate_order(ib::selected_value(broadcast.rate_selector)) &&
	       rate <= rate_order(network->joined_rate) &&
	       record.traffic_class == broadcast.traffic_class && record.sl() == broadcast.sl() &&
	       record.flow_label() == broadcast.flow_label() &&
	       record.hop_limit() == broadcast.hop_limit();
}

bool McGroups::is_full(const Member &member)
{
	return (member.join_state &
		(McMemberRecord::full_member | McMemberRecord::send_only_full_member)) != 0;
}

void McGroups::set_join_state(Group &group, std::map<ib::Guid, Member>::iterator member,
			      std::uint8_t join_state)
{
	const bool was_full = is_full(member->second);
	member->second.join_state = join_state;
	if (is_full(member->second) && !was_full)
		group.full_members++;
	else if (!is_full(member->second) && was_full)
		group.full_members--;
	if (join_state != 0)
		return;
	forget_membership(member->first);
	group.members.erase(member);
}

void McGroups::charge_for_tree(const Group &group, Work &work) const
{
	/* All members and switches are visited, and about two switches are written. */
	work.charge(cost::kCompared * static_cast<std::int64_t>(group.members.size() + switches_) +
		    2 * cost::kSmp);
}

McGroups::Groups::iterator McGroups::create(const Requester &requester, const ib::SaMad &mad,
					    Clock::time_point now, std::uint16_t &status)
{
	const auto &wanted = record_of<McMemberRecord>(mad);
	/* o15-0.2.1: the components that a creator must specify. */
	for (unsigned needed :
	     {McMemberRecord::c_qkey, McMemberRecord::c_traffic_class, McMemberRecord::c_pkey,
	      McMemberRecord::c_sl, McMemberRecord::c_flow_label}) {
		if (!has_component(mad, needed)) {
			status = ib::sa_status_insufficient_components;
			return groups_.end();
		}
	}
	/*
	 * Only a full member may create a group, which includes send-only full members (IBA
	 * 15.2.5.17.3).
	 */
	if ((wanted.join_state() &
	     (McMemberRecord::full_member | McMemberRecord::send_only_full_member)) == 0) {
		status = ib::sa_status_req_invalid;
		return groups_.end();
	}
	ib::Lid mlid = free_mlid();
	if (mlid == 0) {
		log_.warn(requester.lid, now, "no multicast LID is left for LID {}", requester.lid);
		status = ib::sa_status_no_resources;
		return groups_.end();
	}
	Group group;
	McMemberRecord &record = group.record;
	record = wanted;
	record.port_gid = {};
	record.mlid = mlid;
	record.proxy_join = 0;
	record.reserved = std::uint16_t{0};
	std::uint8_t scope = has_component(mad, McMemberRecord::c_scope) && wanted.scope() != 0
				     ? wanted.scope()
				     : ib::scope_link_local;
	record.set_scope_join_state(scope, 0);
	if (wanted.mgid.is_zero()) {
		record.mgid = unused_mgid(scope, mlid);
	} else if (!wanted.mgid.is_multicast()) {
		status = ib::sa_status_req_invalid;
		return groups_.end();
	}
	const Partition *partition = nullptr;
	for (const Partition &p : config_.partitions)
		if (ib::pkey_base(p.pkey) == ib::pkey_base(wanted.pkey))
			partition = &p;
	if (!partition) {
		status = ib::sa_status_req_invalid;
		return groups_.end();
	}
	if (!has_component(mad, McMemberRecord::c_hop_limit))
		record.set_sl_flow_hop(wanted.sl(), wanted.flow_label(), 0);
	const Group *const network = network_of(record.mgid);
	const unsigned usual_mtu = network ? ib::selected_value(network->record.mtu_selector)
					   : static_cast<unsigned>(partition->mtu);
	const unsigned usual_rate = network ? ib::selected_value(network->record.rate_selector)
					    : static_cast<unsigned>(this->usual_rate(*partition));
	unsigned mtu =
		choose(wanted.mtu_selector, has_component(mad, McMemberRecord::c_mtu_selector),
		       has_component(mad, McMemberRecord::c_mtu), usual_mtu);
	unsigned rate =
		choose(wanted.rate_selector, has_component(mad, McMemberRecord::c_rate_selector),
		       has_component(mad, McMemberRecord::c_rate), usual_rate);
	if (ib::mtu_bytes(static_cast<ib::Mtu>(mtu)) == 0 ||
	    ib::rate_tenths(static_cast<ib::Rate>(rate)) == 0) {
		status = ib::sa_status_req_invalid;
		return groups_.end();
	}
	record.mtu_selector = ib::make_selected(ib::Selector::exactly, mtu);
	record.rate_selector = ib::make_selected(ib::Selector::exactly, rate);
	unsigned lifetime = choose(wanted.lifetime_selector,
				   has_component(mad, McMemberRecord::c_lifetime_selector),
				   has_component(mad, McMemberRecord::c_lifetime), kPacketLifetime);
	record.lifetime_selector = ib::make_selected(ib::Selector::exactly, lifetime);
	if (!is_of_its_network(record, network)) {
		status = ib::sa_status_req_invalid;
		return groups_.end();
	}

	auto [at, fresh] = groups_.emplace(record.mgid, std::move(group));
	if (!fresh) {
		status = ib::sa_status_req_invalid;
		return groups_.end();
	}
	mlids_.take_lowest();
	by_mlid_.emplace(mlid, at);
	return at;
}

RecordSet McGroups::join(const Subnet &subnet, const Requester &requester, const ib::SaMad &mad,
			 Clock::time_point now, Work &work)
{
	const auto &wanted = record_of<McMemberRecord>(mad);
	if (!has_component(mad, McMemberRecord::c_port_gid) ||
	    !has_component(mad, McMemberRecord::c_join_state))
		return RecordSet::failure(ib::sa_status_insufficient_components);
	std::uint8_t state = wanted.join_state();
	if (state == 0)
		return RecordSet::failure(ib::sa_status_req_invalid);
	ib::Guid guid = wanted.port_gid.interface_id();
	if (!requester.may_act_for(guid) && subnet.find_port(guid))
		return RecordSet::failure(ib::sa_status_denied);
	PortRef port = subnet.find_port(guid);
	if (!port)
		return RecordSet::failure(ib::sa_status_invalid_gid);

	std::uint16_t status = 0;
	bool created = false;
	auto at = groups_.end();
	if (has_component(mad, McMemberRecord::c_mgid) && !wanted.mgid.is_zero())
		at = groups_.find(wanted.mgid);
	if (!may_join(guid, at == groups_.end() ? nullptr : &at->second))
		return RecordSet::failure(ib::sa_status_no_resources);
	if (at == groups_.end()) {
		at = create(requester, mad, now, status);
		if (at == groups_.end())
			return RecordSet::failure(status);
		created = true;
	} else if (!request_fits(mad, at->second)) {
		return RecordSet::failure(ib::sa_status_req_invalid);
	}
	Group &group = at->second;
	if (!port_can_join(subnet, port, group)) {
		if (created)
			erase(at);
		return RecordSet::failure(ib::sa_status_req_invalid);
	}
	auto [place, fresh] = group.members.try_emplace(guid);
	if (fresh)
		memberships_[guid]++;
	Member &member = place->second;
	set_join_state(group, place, static_cast<std::uint8_t>(member.join_state | state));
	/*
	 * IBA 15.2.5.17: a membership that the port itself has joined does not belong to a proxy
	 * any more.
	 */
	member.by_proxy = !requester.is(guid) && (fresh || member.by_proxy);
	dirty_.insert(group.record.mlid);
	charge_for_tree(group, work);
	if (created)
		watcher_(group.record.mgid, true);
	RecordSet answer;
	answer.add(member_record(group, guid, member));
	return answer;
}

RecordSet McGroups::leave(const Requester &requester, const ib::SaMad &mad, Work &work)
{
	const auto &wanted = record_of<McMemberRecord>(mad);
	for (unsigned needed :
	     {McMemberRecord::c_mgid, McMemberRecord::c_port_gid, McMemberRecord::c_join_state})
		if (!has_component(mad, needed))
			return RecordSet::failure(ib::sa_status_insufficient_components);
	ib::Guid guid = wanted.port_gid.interface_id();
	if (!requester.may_act_for(guid))
		return RecordSet::failure(ib::sa_status_denied);
	auto group = groups_.find(wanted.mgid);
	if (group == groups_.end())
		return RecordSet::failure(ib::sa_status_req_invalid);
	auto &members = group->second.members;
	auto found = members.find(guid);
	if (found == members.end() || (found->second.join_state & wanted.join_state()) == 0)
		return RecordSet::failure(ib::sa_status_req_invalid);
	Member &member = found->second;
	if (!requester.is(guid) && !member.by_proxy)
		return RecordSet::failure(ib::sa_status_denied);
	RecordSet answer;
	answer.add(member_record(group->second, guid, {wanted.join_state(), member.by_proxy}));
	charge_for_tree(group->second, work);
	set_join_state(group->second, found,
		       static_cast<std::uint8_t>(member.join_state & ~wanted.join_state()));
	dirty_.insert(group->second.record.mlid);
	remove_if_unused(group);
	return answer;
}

void McGroups::erase(Groups::iterator group)
{
	const ib::Lid mlid = group->second.record.mlid;
	for (const auto &[guid, member] : group->second.members)
		forget_membership(guid);
	groups_.erase(group);
	by_mlid_.erase(mlid);
	mlids_.release(mlid);
}

void McGroups::remove_if_unused(Groups::iterator group)
{
	/* A group is deleted when its last full member leaves (IBA 15.2.5.17.3). */
	if (group->second.full_members != 0 || group->second.broadcast_of)
		return;
	const ib::Gid mgid = group->first;
	dirty_.insert(group->second.record.mlid);
	erase(group);
	watcher_(mgid, false);
}

McMemberRecord McGroups::member_record(const Group &group, ib::Guid guid,
				       const Member &member) const
{
	McMemberRecord record = group.record;
	record.port_gid = ib::Gid::from_parts(config_.gid_prefix, guid);
	record.set_scope_join_state(record.scope(), member.join_state);
	record.proxy_join = member.by_proxy ? McMemberRecord::proxy_join_bit : std::uint8_t{0};
	return record;
}

Query McGroups::query(const Requester &requester, const ib::SaMad &mad) const
{
	/* Each step processes one group. */
	return Query([this, requester, mad, last = std::optional<ib::Gid>()](RecordSet &answer,
									     Work &work) mutable {
		const auto &wanted = record_of<McMemberRecord>(mad);
		const auto at = last ? groups_.upper_bound(*last) : groups_.begin();
		if (at == groups_.end())
			return Query::Step::done;
		last = at->first;
		const Group &group = at->second;
		work.charge(cost::kCompared);
		if (!request_fits(mad, group))
			return Query::Step::more;
		/*
		 * Members are reported only to trusted requesters, and to a requester that queries
		 * its own port.
		 */
		if (has_component(mad, McMemberRecord::c_port_gid)) {
			ib::Guid guid = wanted.port_gid.interface_id();
			auto member = group.members.find(guid);
			if (member != group.members.end() && requester.may_act_for(guid))
				answer.add(member_record(group, member->first, member->second));
		} else if (requester.trusted && !group.members.empty()) {
			for (const auto &[guid, member] : group.members)
				answer.add(member_record(group, guid, member));
		} else {
			answer.add(group.record);
		}
		return Query::Step::more;
	});
}

/*
 * Adjusts the rate of a group. It is lowered at any time, so that a slower port can join. It is
 * raised only while the group has no members, because members use the rate with which they have
 * joined.
 */
void McGroups::adjust_rate(Group &group)
{
	const ib::Rate rate = usual_rate(*group.broadcast_of);
	unsigned now = ib::selected_value(group.record.rate_selector);
	if (group.members.empty() || ib::rate_tenths(rate) < rate_order(now))
		group.record.rate_selector =
			ib::make_selected(ib::Selector::exactly, static_cast<unsigned>(rate));
	if (group.members.empty())
		group.joined_rate = static_cast<unsigned>(rate);
}

void McGroups::subnet_changed(const Subnet &subnet)
{
	for (const Partition &partition : config_.partitions)
		rates_[&partition] = rate_for(subnet, partition);
	switches_ = subnet.switches.size();
	mlid_capacity_ = ib::lid_multicast_last - ib::lid_multicast_first;
	for (int index : subnet.switches)
		mlid_capacity_ = std::min<unsigned>(mlid_capacity_,
						    subnet.nodes[static_cast<std::size_t>(index)]
							    .switch_info.multicast_fdb_cap);
	for (auto &[mgid, group] : groups_)
		if (group.broadcast_of)
			adjust_rate(group);
	for (auto group = groups_.begin(); group != groups_.end();) {
		auto next = std::next(group);
		auto &members = group->second.members;
		bool changed = false;
		for (auto member = members.begin(); member != members.end();) {
			const auto following = std::next(member);
			if (!subnet.find_port(member->first)) {
				set_join_state(group->second, member, 0);
				changed = true;
			}
			member = following;
		}
		if (changed) {
			dirty_.insert(group->second.record.mlid);
			remove_if_unused(group);
		}
		group = next;
	}
}

McRoute McGroups::route_of(const Subnet &subnet, const Group &group) const
{
	std::vector<PortRef> members;
	for (const auto &[guid, member] : group.members)
		if (PortRef port = subnet.find_port(guid))
			members.push_back(port);
	return {group.record.mlid, multicast_tree(subnet, members)};
}

std::vector<McRoute> McGroups::take_changes(const Subnet &subnet)
{
	std::vector<McRoute> routes;
	for (ib::Lid mlid : std::exchange(dirty_, {})) {
		const auto group = by_mlid_.find(mlid);
		/* The route of a deleted group is empty. */
		routes.push_back(group == by_mlid_.end()
					 ? McRoute{mlid, McTree(subnet.switches.size())}
					 : route_of(subnet, group->second->second));
	}
	return routes;
}

std::vector<McRoute> McGroups::all_routes(const Subnet &subnet)
{
	dirty_.clear();
	std::vector<McRoute> routes;
	for (const auto &[mgid, group] : groups_)
		routes.push_back(route_of(subnet, group));
	return routes;
}

bool McGroups::find(const ib::Gid &mgid, McMemberRecord &record) const
{
	auto found = groups_.find(mgid);
	if (found == groups_.end())
		return false;
	record = found->second.record;
	return true;
}

} // namespace weft::sm
