// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/tables.hpp"

#include <algorithm>
#include <memory>

namespace weft::sm
{

namespace
{

constexpr Field kNodeFields[] = {
	{ib::NodeRecord::c_lid, 0, 16},
	{ib::NodeRecord::c_base_version, 32, 8},
	{ib::NodeRecord::c_class_version, 40, 8},
	{ib::NodeRecord::c_node_type, 48, 8},
	{ib::NodeRecord::c_num_ports, 56, 8},
	{ib::NodeRecord::c_system_image_guid, 64, 64},
	{ib::NodeRecord::c_node_guid, 128, 64},
	{ib::NodeRecord::c_port_guid, 192, 64},
	{ib::NodeRecord::c_partition_cap, 256, 16},
	{ib::NodeRecord::c_device_id, 272, 16},
	{ib::NodeRecord::c_revision, 288, 32},
	{ib::NodeRecord::c_local_port, 320, 8},
	{ib::NodeRecord::c_vendor_id, 328, 24},
	{ib::NodeRecord::c_description, 352, 512},
};
static_assert(offsetof(ib::NodeInfo, vendor_id) * 8 + 32 == 328);

constexpr unsigned kPortInfoAt = 32;
constexpr Field kPortFields[] = {
	{ib::PortInfoRecord::c_lid, 0, 16},
	{ib::PortInfoRecord::c_port, 16, 8},
	{ib::PortInfoRecord::c_gid_prefix, kPortInfoAt + 64, 64},
	{ib::PortInfoRecord::c_base_lid, kPortInfoAt + 128, 16},
	{ib::PortInfoRecord::c_sm_lid, kPortInfoAt + 144, 16},
	{ib::PortInfoRecord::c_local_port, kPortInfoAt + 224, 8},
	{ib::PortInfoRecord::c_link_width_enabled, kPortInfoAt + 232, 8},
	{ib::PortInfoRecord::c_link_width_supported, kPortInfoAt + 240, 8},
	{ib::PortInfoRecord::c_link_width_active, kPortInfoAt + 248, 8},
	{ib::PortInfoRecord::c_speed_supported, kPortInfoAt + 256, 4},
	{ib::PortInfoRecord::c_port_state, kPortInfoAt + 260, 4},
	{ib::PortInfoRecord::c_phys_state, kPortInfoAt + 264, 4},
	{ib::PortInfoRecord::c_down_default, kPortInfoAt + 268, 4},
	{ib::PortInfoRecord::c_lmc, kPortInfoAt + 277, 3},
	{ib::PortInfoRecord::c_speed_active, kPortInfoAt + 280, 4},
	{ib::PortInfoRecord::c_speed_enabled, kPortInfoAt + 284, 4},
	{ib::PortInfoRecord::c_neighbor_mtu, kPortInfoAt + 288, 4},
	{ib::PortInfoRecord::c_sm_sl, kPortInfoAt + 292, 4},
	{ib::PortInfoRecord::c_vl_cap, kPortInfoAt + 296, 4},
	{ib::PortInfoRecord::c_mtu_cap, kPortInfoAt + 332, 4},
};

constexpr Field kLidBlockFields[] = {{0, 0, 16}, {1, 16, 16}};
constexpr Field kSwitchFields[] = {{ib::SwitchInfoRecord::c_lid, 0, 16}};
constexpr Field kMulticastFields[] = {{ib::MulticastForwardingRecord::c_lid, 0, 16},
				      {ib::MulticastForwardingRecord::c_position, 16, 4},
				      {ib::MulticastForwardingRecord::c_block, 23, 9}};
constexpr Field kSlToVlFields[] = {{ib::SlToVlRecord::c_lid, 0, 16},
				   {ib::SlToVlRecord::c_in_port, 16, 8},
				   {ib::SlToVlRecord::c_out_port, 24, 8}};
constexpr Field kLinkFields[] = {{ib::LinkRecord::c_from_lid, 0, 16},
				 {ib::LinkRecord::c_from_port, 16, 8},
				 {ib::LinkRecord::c_to_port, 24, 8},
				 {ib::LinkRecord::c_to_lid, 32, 16}};
constexpr Field kPkeyFields[] = {{ib::PkeyTableRecord::c_lid, 0, 16},
				 {ib::PkeyTableRecord::c_block, 16, 16},
				 {ib::PkeyTableRecord::c_port, 32, 8}};
constexpr Field kGuidFields[] = {{ib::GuidInfoRecord::c_lid, 0, 16},
				 {ib::GuidInfoRecord::c_block, 16, 8}};
constexpr Field kSmFields[] = {{ib::SmInfoRecord::c_lid, 0, 16},
			       {ib::SmInfoRecord::c_guid, 32, 64},
			       {ib::SmInfoRecord::c_priority, 192, 4},
			       {ib::SmInfoRecord::c_state, 196, 4}};

/* Returns the records of one table, item by item: a node, an end port or a switch. */
class Tables
{
public:
	Tables(const TableSources &from, const ib::SaMad &mad, bool trusted)
	    : from_(from), subnet_(*from.subnet), mad_(mad), trusted_(trusted)
	{
	}

	std::size_t node_count() const { return subnet_.nodes.size(); }
	std::size_t end_port_count() const { return subnet_.end_ports.size(); }
	std::size_t switch_count() const { return subnet_.switches.size(); }

	void node(std::size_t index, RecordSet &answer, Work &work) const
	{
		const PortRef ref = subnet_.end_ports[index];
		const Node &node = subnet_.node(ref);
		ib::NodeRecord record{};
		record.lid = subnet_.port(ref).lid;
		record.info = node.info;
		record.info.port_guid = subnet_.port(ref).guid;
		record.info.local_port = node.is_switch() ? node.in_port : ref.port;
		record.description = node.description;
		offer(kNodeFields, record, answer, work);
	}

	void ports(std::size_t index, RecordSet &answer, Work &work) const
	{
		/*
		 * The options have a bit that selects a bitwise comparison of the capability mask
		 * (IBA 15.2.5.3).
		 */
		constexpr std::uint8_t by_bits = 0x80;
		const auto &wanted = record_of<ib::PortInfoRecord>(mad_);
		bool masked = has_component(mad_, ib::PortInfoRecord::c_capability_mask);
		bool bitwise = has_component(mad_, ib::PortInfoRecord::c_options) &&
			       (wanted.options & by_bits) != 0;
		bool whole = masked && !bitwise && (mad_.header.attr_mod & 0x80000000u) == 0;
		each_port(index, [&](PortRef ref, const PortData &port, ib::Lid lid) {
			ib::PortInfoRecord record{};
			record.lid = lid;
			record.port = ref.port;
			record.info = port.info;
			if (!trusted_)
				record.info.mkey = std::uint64_t{0};
			std::uint32_t mask = wanted.info.capability_mask;
			std::uint32_t have = port.info.capability_mask;
			if (whole ? mask != have : masked && (have & mask) != mask)
				work.charge(cost::kCompared);
			else
				offer(kPortFields, record, answer, work);
		});
	}

	void switch_info(std::size_t index, RecordSet &answer, Work &work) const
	{
		ib::SwitchInfoRecord record{};
		record.lid = switch_node(index).ports[0].lid;
		record.info = switch_node(index).switch_info;
		offer(kSwitchFields, record, answer, work);
	}

	void links(std::size_t index, RecordSet &answer, Work &work) const
	{
		each_port(index, [&](PortRef ref, const PortData &port, ib::Lid lid) {
			if (!port.peer)
				return;
			ib::LinkRecord record{};
			record.from_lid = lid;
			record.from_port = ref.port;
			record.to_lid = lid_of(port.peer);
			record.to_port = port.peer.port;
			offer(kLinkFields, record, answer, work);
		});
	}

	void linear_table(std::size_t index, RecordSet &answer, Work &work) const
	{
		constexpr std::size_t per_block = sizeof(ib::LinearForwarding::port);
		const Lft &lft = subnet_.lfts[index];
		for (std::size_t from = 0; from < lft.size(); from += per_block) {
			ib::LinearForwardingRecord record{};
			record.lid = switch_node(index).ports[0].lid;
			record.block = static_cast<std::uint16_t>(from / per_block);
			std::fill_n(record.table.port, per_block, ib::lft_drop);
			std::copy_n(lft.begin() + static_cast<std::ptrdiff_t>(from),
				    std::min(per_block, lft.size() - from), record.table.port);
			offer(kLidBlockFields, record, answer, work);
		}
	}

	/*
	 * Adds one block of a switch, in all positions. Returns false if the table has no such
	 * block.
	 */
	bool multicast_table(std::size_t index, std::size_t block, RecordSet &answer,
			     Work &work) const
	{
		const Node &node = switch_node(index);
		if (block >= from_.configurator.multicast_blocks(node))
			return false;
		for (unsigned position = 0; position < Configurator::multicast_positions(node);
		     position++) {
			ib::MulticastForwardingRecord record{};
			record.lid = node.ports[0].lid;
			record.position_block = static_cast<std::uint16_t>(position << 12 | block);
			record.table = from_.configurator.multicast_block(node, block, position);
			offer(kMulticastFields, record, answer, work);
		}
		return true;
	}

	/*
	 * Adds the tables of one input port of a node for all its output ports. Returns false if
	 * there is no such input port. A channel adapter has one, with number 0.
	 */
	bool sl_to_vl(std::size_t index, std::size_t in, RecordSet &answer, Work &work) const
	{
		const Node &node = subnet_.nodes[index];
		if (in >= (node.is_switch() ? node.ports.size() : 1))
			return false;
		each_port(index, [&](PortRef ref, const PortData &, ib::Lid lid) {
			if (node.is_switch() && ref.port == in)
				return;
			ib::SlToVlRecord record{};
			record.lid = lid;
			record.in_port = static_cast<std::uint8_t>(in);
			record.out_port = ref.port;
			record.table = Configurator::sl_to_vl(from_.config);
			offer(kSlToVlFields, record, answer, work);
		});
		return true;
	}

	void pkeys(std::size_t index, RecordSet &answer, Work &work) const
	{
		const PortRef ref = subnet_.end_ports[index];
		const PortData &port = subnet_.port(ref);
		for (std::size_t from = 0; from < port.pkeys.size(); from += 32) {
			ib::PkeyTableRecord record{};
			record.lid = port.lid;
			record.block = static_cast<std::uint16_t>(from / 32);
			record.port = ref.port;
			for (std::size_t i = from; i < std::min(port.pkeys.size(), from + 32); i++)
				record.table.pkey[i - from] = port.pkeys[i];
			offer(kPkeyFields, record, answer, work);
		}
	}

	void guids(std::size_t index, RecordSet &answer, Work &work) const
	{
		const PortData &port = subnet_.port(subnet_.end_ports[index]);
		ib::GuidInfoRecord record{};
		record.lid = port.lid;
		record.info.guid[0] = port.guid;
		offer(kGuidFields, record, answer, work);
	}

	void manager(std::size_t, RecordSet &answer, Work &work) const
	{
		const Config &config = from_.config;
		PortRef own = subnet_.find_port(config.guid + 1);
		if (!own)
			return;
		ib::SmInfoRecord record{};
		record.lid = subnet_.port(own).lid;
		record.info.guid = config.guid + 1;
		if (trusted_)
			record.info.sm_key = config.sm_key;
		record.info.priority_state = static_cast<std::uint8_t>(
			config.priority << 4 | static_cast<unsigned>(ib::SmState::master));
		offer(kSmFields, record, answer, work);
	}

private:
	template<class Record>
	void offer(std::span<const Field> fields, const Record &record, RecordSet &answer,
		   Work &work) const
	{
		work.charge(cost::kCompared);
		if (fields_match(fields, mad_.component_mask, mad_.data, &record))
			answer.add(record);
	}

	ib::Lid lid_of(PortRef ref) const
	{
		const Node &node = subnet_.node(ref);
		return node.is_switch() ? node.ports[0].lid : node.ports[ref.port].lid;
	}

	template<class Fn>
	void each_port(std::size_t index, Fn &&fn) const
	{
		const Node &node = subnet_.nodes[index];
		for (std::size_t number = 0; number < node.ports.size(); number++) {
			PortRef ref{static_cast<int>(index), static_cast<std::uint8_t>(number)};
			if (node.ports[number].known)
				fn(ref, node.ports[number], lid_of(ref));
		}
	}

	const Node &switch_node(std::size_t index) const
	{
		return subnet_.nodes[static_cast<std::size_t>(subnet_.switches[index])];
	}

	const TableSources from_;
	const Subnet &subnet_;
	const ib::SaMad mad_;
	const bool trusted_;
};

} // namespace

std::optional<Query> query_table(const TableSources &from, const ib::SaMad &mad, bool trusted)
{
	const auto tables = std::make_shared<const Tables>(from, mad, trusted);
	const auto each = [&](std::size_t count,
			      void (Tables::*visit)(std::size_t, RecordSet &, Work &) const) {
		return Query::each(
			count, [tables, visit](std::size_t index, RecordSet &answer, Work &work) {
				((*tables).*visit)(index, answer, work);
			});
	};
	/* Visits items that have several parts each. */
	const auto each_part = [&](std::size_t count,
				   bool (Tables::*visit)(std::size_t, std::size_t, RecordSet &,
							 Work &) const) {
		return Query([tables, visit, count, index = std::size_t{0},
			      part = std::size_t{0}](RecordSet &answer, Work &work) mutable {
			if (index == count)
				return Query::Step::done;
			work.charge(cost::kCompared);
			if (((*tables).*visit)(index, part, answer, work)) {
				part++;
			} else {
				part = 0;
				index++;
			}
			return Query::Step::more;
		});
	};
	switch (mad.header.attr_id.value()) {
	case ib::attr_node_record:
		return each(tables->end_port_count(), &Tables::node);
	case ib::attr_port_info_record:
		return each(tables->node_count(), &Tables::ports);
	case ib::attr_switch_info_record:
		return each(tables->switch_count(), &Tables::switch_info);
	case ib::attr_link_record:
		return each(tables->node_count(), &Tables::links);
	case ib::attr_linear_forwarding_record:
		return each(tables->switch_count(), &Tables::linear_table);
	case ib::attr_multicast_forwarding_record:
		return each_part(tables->switch_count(), &Tables::multicast_table);
	case ib::attr_sl_to_vl_record:
		return each_part(tables->node_count(), &Tables::sl_to_vl);
	case ib::attr_pkey_table_record:
		return each(tables->end_port_count(), &Tables::pkeys);
	case ib::attr_guid_info_record:
		return each(tables->end_port_count(), &Tables::guids);
	case ib::attr_sm_info_record:
		return each(1, &Tables::manager);
	default:
		return std::nullopt;
	}
}

} // namespace weft::sm
