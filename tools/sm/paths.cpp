// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/paths.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "sm/path_values.hpp"
#include "sm/routing.hpp"

namespace weft::sm
{

namespace
{

using ib::PathRecord;

/*
 * Limit of records in an answer, because the paths of a large subnet would not fit into any buffer.
 */
constexpr std::size_t kRecordsMax = 65536;

/* Returns true if a path whose value is at most @best may meet a request's selector. */
template<class Order>
bool may_meet(std::uint8_t byte, bool has_selector, unsigned best, Order order)
{
	const unsigned wanted = ib::selected_value(byte);
	switch (has_selector ? ib::selector_of(byte) : ib::Selector::exactly) {
	case ib::Selector::greater:
		return order(best) > order(wanted);
	case ib::Selector::exactly:
		return order(best) >= order(wanted);
	case ib::Selector::less:
	case ib::Selector::largest:
		break;
	}
	return true;
}

class PathQuery
{
public:
	PathQuery(std::shared_ptr<const Subnet> subnet, const Config &config, const ib::SaMad &mad,
		  PortRef requester)
	    : subnet_(std::move(subnet)), config_(config), mad_(mad),
	      single_(mad.header.is_method(ib::MadMethod::get))
	{
		for (const Partition &partition : config.partitions)
			sls_[ib::pkey_base(partition.pkey)] = partition.sl;
		if (!select(PathRecord::c_sgid, wanted_.sgid, PathRecord::c_slid, wanted_.slid,
			    sources_) ||
		    !select(PathRecord::c_dgid, wanted_.dgid, PathRecord::c_dlid, wanted_.dlid,
			    destinations_))
			return;
		if (single_ && sources_.all) {
			if (!requester)
				status_ = ib::sa_status_req_invalid;
			sources_ = {.all = false, .ports = {requester}};
		}
	}

	Query::Step step(RecordSet &answer, Work &work)
	{
		if (status_ != 0)
			return refuse(answer, status_);
		/* The lifetime is the same for all paths. */
		if (!meets(wanted_.lifetime_selector, PathRecord::c_lifetime_selector,
			   PathRecord::c_lifetime, kPacketLifetime, plain_order))
			return Query::Step::done;
		if (!filter(sources_, true, work) || !filter(destinations_, false, work))
			return Query::Step::more;
		if (pair_ == 0 && path_ == 0 &&
		    sources_.ports.size() * destinations_.ports.size() > kPathPairsMax)
			return refuse(answer, ib::sa_status_too_many_records);
		if (pair_ == sources_.ports.size() * destinations_.ports.size())
			return Query::Step::done;
		const PortRef source = sources_.ports[pair_ / destinations_.ports.size()];
		const PortRef destination = destinations_.ports[pair_ % destinations_.ports.size()];
		if (!next_path(source, destination, answer, work)) {
			pair_++;
			path_ = 0;
		}
		if (single_ && answer.count() != 0)
			return Query::Step::done;
		if (answer.count() > kRecordsMax)
			return refuse(answer, ib::sa_status_too_many_records);
		return Query::Step::more;
	}

private:
	/* The ports that may be one end of a path, as far as they have been checked. */
	struct End {
		/*
		 * True if the request selects no port. The first @filtered end ports of the subnet
		 * have then been checked, and @ports has those that match.
		 */
		bool all = false;
		std::vector<PortRef> ports;
		std::size_t filtered = 0;
	};

	static Query::Step refuse(RecordSet &answer, std::uint16_t status)
	{
		answer = RecordSet::failure(status);
		return Query::Step::done;
	}

	bool names(unsigned component) const { return has_component(mad_, component); }

	/* Selects the end ports that match the request's GID and LID for one end. */
	bool select(unsigned gid_component, const ib::Gid &gid, unsigned lid_component, ib::Lid lid,
		    End &end)
	{
		PortRef by_gid;
		if (names(gid_component)) {
			bool here = gid.subnet_prefix() == config_.gid_prefix ||
				    gid.subnet_prefix() == ib::gid_prefix_link_local;
			by_gid = here ? subnet_->find_port(gid.interface_id()) : PortRef{};
			if (!by_gid) {
				/* IBA 15.2.5.16: the GID does not belong to this subnet. */
				status_ = here ? std::uint16_t{ib::sa_status_no_records}
					       : std::uint16_t{ib::sa_status_invalid_gid};
				return false;
			}
		}
		if (names(lid_component)) {
			PortRef by_lid = subnet_->find_lid(lid);
			if (!by_lid || (by_gid && by_gid != by_lid)) {
				status_ = ib::sa_status_no_records;
				return false;
			}
			end.ports = {by_lid};
		} else if (by_gid) {
			end.ports = {by_gid};
		} else {
			end.all = true;
		}
		return true;
	}

	/* Checks the next ports. Returns true if there are no more. */
	bool filter(End &end, bool is_source, Work &work)
	{
		while (end.all && end.filtered < subnet_->end_ports.size()) {
			if (!work.left())
				return false;
			work.charge(cost::kCompared);
			const PortRef ref = subnet_->end_ports[end.filtered++];
			if (may_match(ref, is_source))
				end.ports.push_back(ref);
		}
		return true;
	}

	bool may_match(PortRef ref, bool is_source) const
	{
		const PortData &port = subnet_->port(ref);
		if (port.lid == 0 ||
		    std::ranges::none_of(port.pkeys, [this](ib::Pkey pkey) { return fits(pkey); }))
			return false;
		/* Port 0 of a switch cannot be a source, because it has no link. */
		if (!is_source || subnet_->node(ref).is_switch())
			return true;
		const auto mtu = static_cast<unsigned>(port.info.neighbor_mtu());
		const auto rate = static_cast<unsigned>(
			ib::link_rate(port.info.link_width_active, port.info.speed_active(),
				      port.info.speed_ext_active()));
		return (!names(PathRecord::c_mtu) ||
			may_meet(wanted_.mtu_selector, names(PathRecord::c_mtu_selector), mtu,
				 plain_order)) &&
		       (!names(PathRecord::c_rate) ||
			may_meet(wanted_.rate_selector, names(PathRecord::c_rate_selector), rate,
				 rate_order));
	}

	std::uint8_t sl_of(ib::Pkey pkey) const
	{
		const auto found = sls_.find(ib::pkey_base(pkey));
		return found == sls_.end() ? std::uint8_t{0} : found->second;
	}
	/* Returns true if the request permits a path with that P_Key and its SL. */
	bool fits(ib::Pkey pkey) const
	{
		return (!names(PathRecord::c_pkey) ||
			ib::pkey_base(pkey) == ib::pkey_base(wanted_.pkey)) &&
		       (!names(PathRecord::c_sl) || wanted_.sl() == sl_of(pkey));
	}

	/*
	 * Returns a P_Key that both ends have, and at least one of them as a full member. Returns 0
	 * if there is none.
	 */
	ib::Pkey shared_pkey(const PortData &a, const PortData &b, Work &work) const
	{
		for (ib::Pkey mine : a.pkeys) {
			if (!fits(mine))
				continue;
			work.charge(static_cast<std::int64_t>(b.pkeys.size() / 8));
			for (ib::Pkey theirs : b.pkeys)
				if (ib::pkey_match(mine, theirs))
					return mine;
		}
		return 0;
	}

	/*
	 * Adds the next path between two ports if it matches the request. Returns true if there are
	 * more. With an LMC there is one path for each of the destination's LIDs, and the return
	 * path uses the same offset.
	 */
	bool next_path(PortRef source, PortRef destination, RecordSet &answer, Work &work)
	{
		const PortData &from = subnet_->port(source);
		const PortData &to = subnet_->port(destination);
		if (path_ == 0) {
			work.charge(cost::kPortPair);
			pkey_ = from.lid == 0 || to.lid == 0 ? ib::Pkey{0}
							     : shared_pkey(from, to, work);
			limit_ = single_ ? 1 : 127;
			if (names(PathRecord::c_num_path) && wanted_.num_path() != 0)
				limit_ = std::min<unsigned>(limit_, wanted_.num_path());
		}
		if (pkey_ == 0 || limit_ == 0 || path_ == 1u << to.lmc)
			return false;
		const unsigned i = path_++;
		const auto dlid = static_cast<ib::Lid>(to.lid + i);
		auto slid = static_cast<ib::Lid>(from.lid + i % (1u << from.lmc));
		if (names(PathRecord::c_slid))
			slid = wanted_.slid;
		if (names(PathRecord::c_dlid) && dlid != wanted_.dlid)
			return true;
		if (add(source, destination, slid, dlid, answer, work))
			limit_--;
		return true;
	}

	bool add(PortRef source, PortRef destination, ib::Lid slid, ib::Lid dlid, RecordSet &answer,
		 Work &work) const
	{
		auto there = walk(*subnet_, source, dlid);
		work.charge(cost::kRouteHop * (1 + (there ? there->hops : 1)));
		if (!there)
			return false;
		auto back = walk(*subnet_, destination, slid);
		work.charge(cost::kRouteHop * (1 + (back ? back->hops : 1)));
		if (!back && names(PathRecord::c_reversible) && wanted_.reversible())
			return false;
		PathLimits limits = *there;
		if (back) {
			limits.mtu = std::min(limits.mtu, back->mtu);
			if (ib::rate_tenths(back->rate) < ib::rate_tenths(limits.rate))
				limits.rate = back->rate;
		}
		auto mtu = static_cast<unsigned>(limits.mtu);
		auto rate = static_cast<unsigned>(limits.rate);
		if (!meets(wanted_.mtu_selector, PathRecord::c_mtu_selector, PathRecord::c_mtu, mtu,
			   plain_order) ||
		    !meets(wanted_.rate_selector, PathRecord::c_rate_selector, PathRecord::c_rate,
			   rate, rate_order))
			return false;

		PathRecord record{};
		if (names(PathRecord::c_service_id_high) || names(PathRecord::c_service_id_low))
			record.service_id = wanted_.service_id;
		record.dgid = gid_of(destination);
		record.sgid = gid_of(source);
		record.dlid = dlid;
		record.slid = slid;
		if (names(PathRecord::c_flow_label))
			record.raw_flow_hop =
				ib::field_set<27, 8>(std::uint32_t{0}, wanted_.flow_label());
		if (names(PathRecord::c_traffic_class))
			record.traffic_class = wanted_.traffic_class;
		record.reversible_num_path = static_cast<std::uint8_t>((back ? 0x80 : 0) | 1);
		record.pkey = pkey_;
		record.qos_class_sl = std::uint16_t{sl_of(pkey_)};
		record.mtu_selector = ib::make_selected(ib::Selector::exactly, mtu);
		record.rate_selector = ib::make_selected(ib::Selector::exactly, rate);
		record.lifetime_selector =
			ib::make_selected(ib::Selector::exactly, kPacketLifetime);
		answer.add(record);
		return true;
	}

	template<class Order>
	bool meets(std::uint8_t byte, unsigned selector, unsigned value, unsigned actual,
		   Order order) const
	{
		return !names(value) || selector_allows(byte, names(selector), actual, order);
	}

	ib::Gid gid_of(PortRef ref) const
	{
		return ib::Gid::from_parts(config_.gid_prefix, subnet_->port(ref).guid);
	}

	const std::shared_ptr<const Subnet> subnet_;
	const Config &config_;
	const ib::SaMad mad_;
	const PathRecord &wanted_ = record_of<PathRecord>(mad_);
	const bool single_;
	/* SLs of partitions, keyed by the base of the P_Key; partitions with SL 0 have no entry. */
	std::unordered_map<ib::Pkey, std::uint8_t> sls_;
	/* Status of the answer if there are no paths. */
	std::uint16_t status_ = 0;
	End sources_;
	End destinations_;
	/* The current pair of ports, their P_Key, and the number of the next path between them. */
	std::size_t pair_ = 0;
	ib::Pkey pkey_ = 0;
	unsigned path_ = 0;
	/* Number of paths between them that may still be added. */
	unsigned limit_ = 0;
};

/* Returns the path to a multicast group, with the group's parameters. */
RecordSet group_path(const Subnet &subnet, const Config &config, const McGroups &groups,
		     const ib::SaMad &mad, PortRef requester)
{
	const auto &wanted = record_of<PathRecord>(mad);
	ib::McMemberRecord group;
	if (!groups.find(wanted.dgid, group))
		return RecordSet::failure(ib::sa_status_no_records);
	PortRef source = has_component(mad, PathRecord::c_sgid)
				 ? subnet.find_port(wanted.sgid.interface_id())
				 : requester;
	if (!source)
		return RecordSet::failure(ib::sa_status_invalid_gid);
	PathRecord record{};
	record.dgid = group.mgid;
	record.sgid = ib::Gid::from_parts(config.gid_prefix, subnet.port(source).guid);
	record.dlid = group.mlid;
	record.slid = subnet.port(source).lid;
	record.raw_flow_hop = ib::field_set<27, 0>(std::uint32_t{0}, group.sl_flow_hop.value());
	record.traffic_class = group.traffic_class;
	record.reversible_num_path = 0x81;
	record.pkey = group.pkey;
	record.qos_class_sl = std::uint16_t{group.sl()};
	record.mtu_selector = group.mtu_selector;
	record.rate_selector = group.rate_selector;
	record.lifetime_selector = group.lifetime_selector;
	RecordSet answer;
	answer.add(record);
	return answer;
}

} // namespace

Query find_paths(std::shared_ptr<const Subnet> subnet, const Config &config, const McGroups &groups,
		 const ib::SaMad &mad, PortRef requester)
{
	const auto &wanted = record_of<PathRecord>(mad);
	if (has_component(mad, PathRecord::c_dgid) && wanted.dgid.is_multicast())
		return Query(group_path(*subnet, config, groups, mad, requester));
	const auto paths = std::make_shared<PathQuery>(std::move(subnet), config, mad, requester);
	return Query([paths](RecordSet &answer, Work &work) { return paths->step(answer, work); });
}

} // namespace weft::sm
