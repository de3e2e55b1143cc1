// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/paths.hpp"

#include <algorithm>
#include <optional>

#include "sm/routing.hpp"

namespace weft::sm
{

namespace
{

using Record = ib::PathRecord;

constexpr std::uint8_t packet_lifetime = 18;
/* A table of all paths of a large subnet fits nobody's buffer. */
constexpr std::size_t records_max = 65536;

unsigned rate_order(unsigned code)
{
	return ib::rate_tenths(static_cast<ib::Rate>(code));
}
unsigned plain_order(unsigned code)
{
	return code;
}

class PathQuery
{
public:
	PathQuery(const Subnet &subnet, const Config &config, const ib::SaMad &mad)
	    : subnet_(subnet), config_(config), mad_(mad), wanted_(record_of<Record>(mad)),
	      single_(mad.header.is_method(ib::MadMethod::get))
	{
	}

	RecordSet run(PortRef requester)
	{
		std::vector<PortRef> sources;
		std::vector<PortRef> destinations;
		std::uint16_t status = 0;
		if (!select(Record::c_sgid, wanted_.sgid, Record::c_slid, wanted_.slid, sources,
			    status) ||
		    !select(Record::c_dgid, wanted_.dgid, Record::c_dlid, wanted_.dlid,
			    destinations, status))
			return RecordSet::failure(status);
		if (single_ && !names(Record::c_sgid) && !names(Record::c_slid)) {
			if (!requester)
				return RecordSet::failure(ib::sa_status_req_invalid);
			sources = {requester};
		}
		RecordSet answer;
		for (PortRef source : sources) {
			for (PortRef destination : destinations) {
				add_pair(source, destination, answer);
				if (single_ && answer.count() != 0)
					return answer;
				if (answer.count() > records_max)
					return RecordSet::failure(ib::sa_status_too_many_records);
			}
		}
		return answer;
	}

private:
	bool names(unsigned component) const { return has_component(mad_, component); }

	/* The end ports that a GID and a LID of the request leave. */
	bool select(unsigned gid_component, const ib::Gid &gid, unsigned lid_component, ib::Lid lid,
		    std::vector<PortRef> &out, std::uint16_t &status) const
	{
		PortRef by_gid;
		if (names(gid_component)) {
			bool here = gid.subnet_prefix() == config_.gid_prefix ||
				    gid.subnet_prefix() == ib::gid_prefix_link_local;
			by_gid = here ? subnet_.find_port(gid.interface_id()) : PortRef{};
			if (!by_gid) {
				/* IBA 15.2.5.16: a GID that is not of this subnet. */
				status = here ? std::uint16_t{ib::sa_status_no_records}
					      : std::uint16_t{ib::sa_status_invalid_gid};
				return false;
			}
		}
		if (names(lid_component)) {
			PortRef by_lid = subnet_.find_lid(lid);
			if (!by_lid || (by_gid && by_gid != by_lid)) {
				status = ib::sa_status_no_records;
				return false;
			}
			out = {by_lid};
		} else if (by_gid) {
			out = {by_gid};
		} else {
			out = subnet_.end_ports;
		}
		return true;
	}

	/* The P_Key that both ends share, one of them as a full member; 0 if none. */
	ib::Pkey shared_pkey(const PortData &a, const PortData &b) const
	{
		for (ib::Pkey mine : a.pkeys) {
			if (names(Record::c_pkey) &&
			    ib::pkey_base(mine) != ib::pkey_base(wanted_.pkey))
				continue;
			for (ib::Pkey theirs : b.pkeys)
				if (ib::pkey_match(mine, theirs))
					return mine;
		}
		return 0;
	}

	void add_pair(PortRef source, PortRef destination, RecordSet &answer) const
	{
		const PortData &from = subnet_.port(source);
		const PortData &to = subnet_.port(destination);
		if (from.lid == 0 || to.lid == 0)
			return;
		ib::Pkey pkey = shared_pkey(from, to);
		if (pkey == 0)
			return;
		unsigned limit = single_ ? 1 : 127;
		if (names(Record::c_num_path) && wanted_.num_path() != 0)
			limit = std::min<unsigned>(limit, wanted_.num_path());
		/* With an LMC: one path for each of the destination's LIDs, and back by the same.
		 */
		for (unsigned i = 0; i < 1u << to.lmc && limit != 0; i++) {
			auto dlid = static_cast<ib::Lid>(to.lid + i);
			auto slid = static_cast<ib::Lid>(from.lid + i % (1u << from.lmc));
			if (names(Record::c_slid))
				slid = wanted_.slid;
			if (names(Record::c_dlid) && dlid != wanted_.dlid)
				continue;
			if (add(source, destination, slid, dlid, pkey, answer))
				limit--;
		}
	}

	bool add(PortRef source, PortRef destination, ib::Lid slid, ib::Lid dlid, ib::Pkey pkey,
		 RecordSet &answer) const
	{
		auto there = walk(subnet_, source, dlid);
		if (!there)
			return false;
		auto back = walk(subnet_, destination, slid);
		if (!back && names(Record::c_reversible) && wanted_.reversible())
			return false;
		PathLimits limits = *there;
		if (back) {
			limits.mtu = std::min(limits.mtu, back->mtu);
			if (ib::rate_tenths(back->rate) < ib::rate_tenths(limits.rate))
				limits.rate = back->rate;
		}
		auto mtu = static_cast<unsigned>(limits.mtu);
		auto rate = static_cast<unsigned>(limits.rate);
		if (!meets(wanted_.mtu_selector, Record::c_mtu_selector, Record::c_mtu, mtu,
			   plain_order) ||
		    !meets(wanted_.rate_selector, Record::c_rate_selector, Record::c_rate, rate,
			   rate_order) ||
		    !meets(wanted_.lifetime_selector, Record::c_lifetime_selector,
			   Record::c_lifetime, packet_lifetime, plain_order))
			return false;
		std::uint8_t sl = 0;
		for (const Partition &partition : config_.partitions)
			if (ib::pkey_base(partition.pkey) == ib::pkey_base(pkey))
				sl = partition.sl;
		if (names(Record::c_sl) && wanted_.sl() != sl)
			return false;

		Record record{};
		if (names(Record::c_service_id_high) || names(Record::c_service_id_low))
			record.service_id = wanted_.service_id;
		record.dgid = gid_of(destination);
		record.sgid = gid_of(source);
		record.dlid = dlid;
		record.slid = slid;
		if (names(Record::c_flow_label))
			record.raw_flow_hop =
				ib::field_set<27, 8>(std::uint32_t{0}, wanted_.flow_label());
		if (names(Record::c_traffic_class))
			record.traffic_class = wanted_.traffic_class;
		record.reversible_num_path = static_cast<std::uint8_t>((back ? 0x80 : 0) | 1);
		record.pkey = pkey;
		record.qos_class_sl = std::uint16_t{sl};
		record.mtu_selector = ib::make_selected(ib::Selector::exactly, mtu);
		record.rate_selector = ib::make_selected(ib::Selector::exactly, rate);
		record.lifetime_selector =
			ib::make_selected(ib::Selector::exactly, packet_lifetime);
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
		return ib::Gid::from_parts(config_.gid_prefix, subnet_.port(ref).guid);
	}

	const Subnet &subnet_;
	const Config &config_;
	const ib::SaMad &mad_;
	const Record &wanted_;
	const bool single_;
};

/* The path to a multicast group is the group's own parameters. */
RecordSet group_path(const Subnet &subnet, const Config &config, const McGroups &groups,
		     const ib::SaMad &mad, PortRef requester)
{
	const auto &wanted = record_of<Record>(mad);
	ib::McMemberRecord group;
	if (!groups.find(wanted.dgid, group))
		return RecordSet::failure(ib::sa_status_no_records);
	PortRef source = has_component(mad, Record::c_sgid)
				 ? subnet.find_port(wanted.sgid.interface_id())
				 : requester;
	if (!source)
		return RecordSet::failure(ib::sa_status_invalid_gid);
	Record record{};
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

RecordSet find_paths(const Subnet &subnet, const Config &config, const McGroups &groups,
		     const ib::SaMad &mad, PortRef requester)
{
	const auto &wanted = record_of<Record>(mad);
	if (has_component(mad, Record::c_dgid) && wanted.dgid.is_multicast())
		return group_path(subnet, config, groups, mad, requester);
	return PathQuery(subnet, config, mad).run(requester);
}

} // namespace weft::sm
