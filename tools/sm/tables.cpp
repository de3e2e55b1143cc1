// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/tables.hpp"

#include <algorithm>

namespace weft::sm
{

namespace
{

constexpr Field node_fields[] = {
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

constexpr unsigned port_info_at = 32;
constexpr Field port_fields[] = {
	{ib::PortInfoRecord::c_lid, 0, 16},
	{ib::PortInfoRecord::c_port, 16, 8},
	{ib::PortInfoRecord::c_gid_prefix, port_info_at + 64, 64},
	{ib::PortInfoRecord::c_base_lid, port_info_at + 128, 16},
	{ib::PortInfoRecord::c_sm_lid, port_info_at + 144, 16},
	{ib::PortInfoRecord::c_local_port, port_info_at + 224, 8},
	{ib::PortInfoRecord::c_link_width_enabled, port_info_at + 232, 8},
	{ib::PortInfoRecord::c_link_width_supported, port_info_at + 240, 8},
	{ib::PortInfoRecord::c_link_width_active, port_info_at + 248, 8},
	{ib::PortInfoRecord::c_speed_supported, port_info_at + 256, 4},
	{ib::PortInfoRecord::c_port_state, port_info_at + 260, 4},
	{ib::PortInfoRecord::c_phys_state, port_info_at + 264, 4},
	{ib::PortInfoRecord::c_down_default, port_info_at + 268, 4},
	{ib::PortInfoRecord::c_lmc, port_info_at + 277, 3},
	{ib::PortInfoRecord::c_speed_active, port_info_at + 280, 4},
	{ib::PortInfoRecord::c_speed_enabled, port_info_at + 284, 4},
	{ib::PortInfoRecord::c_neighbor_mtu, port_info_at + 288, 4},
	{ib::PortInfoRecord::c_sm_sl, port_info_at + 292, 4},
	{ib::PortInfoRecord::c_vl_cap, port_info_at + 296, 4},
	{ib::PortInfoRecord::c_mtu_cap, port_info_at + 332, 4},
};

constexpr Field lid_block_fields[] = {{0, 0, 16}, {1, 16, 16}};
constexpr Field switch_fields[] = {{ib::SwitchInfoRecord::c_lid, 0, 16}};
constexpr Field link_fields[] = {{ib::LinkRecord::c_from_lid, 0, 16},
				 {ib::LinkRecord::c_from_port, 16, 8},
				 {ib::LinkRecord::c_to_port, 24, 8},
				 {ib::LinkRecord::c_to_lid, 32, 16}};
constexpr Field pkey_fields[] = {{ib::PkeyTableRecord::c_lid, 0, 16},
				 {ib::PkeyTableRecord::c_block, 16, 16},
				 {ib::PkeyTableRecord::c_port, 32, 8}};
constexpr Field guid_fields[] = {{ib::GuidInfoRecord::c_lid, 0, 16},
				 {ib::GuidInfoRecord::c_block, 16, 8}};
constexpr Field sm_fields[] = {{ib::SmInfoRecord::c_lid, 0, 16},
			       {ib::SmInfoRecord::c_guid, 32, 64},
			       {ib::SmInfoRecord::c_priority, 192, 4},
			       {ib::SmInfoRecord::c_state, 196, 4}};

class Tables
{
public:
	Tables(const Subnet &subnet, const ib::SaMad &mad, RecordSet &answer)
	    : subnet_(subnet), mad_(mad), answer_(answer)
	{
	}

	void nodes()
	{
		for (PortRef ref : subnet_.end_ports) {
			const Node &node = subnet_.node(ref);
			ib::NodeRecord record{};
			record.lid = subnet_.port(ref).lid;
			record.info = node.info;
			record.info.port_guid = subnet_.port(ref).guid;
			record.info.local_port = node.is_switch() ? node.in_port : ref.port;
			record.description = node.description;
			offer(node_fields, record);
		}
	}

	void ports(bool trusted)
	{
		/* Options name a comparison by bits in the capability mask, IBA 15.2.5.3. */
		constexpr std::uint8_t by_bits = 0x80;
		const auto &wanted = record_of<ib::PortInfoRecord>(mad_);
		bool masked = has_component(mad_, ib::PortInfoRecord::c_capability_mask);
		bool bitwise = has_component(mad_, ib::PortInfoRecord::c_options) &&
			       (wanted.options & by_bits) != 0;
		bool whole = masked && !bitwise && (mad_.header.attr_mod & 0x80000000u) == 0;
		each_port([&](PortRef ref, const PortData &port, ib::Lid lid) {
			ib::PortInfoRecord record{};
			record.lid = lid;
			record.port = ref.port;
			record.info = port.info;
			if (!trusted)
				record.info.mkey = std::uint64_t{0};
			std::uint32_t mask = wanted.info.capability_mask;
			std::uint32_t have = port.info.capability_mask;
			if (whole ? mask != have : masked && (have & mask) != mask)
				return;
			offer(port_fields, record);
		});
	}

	void switches()
	{
		each_switch([&](const Node &node, ib::Lid lid) {
			ib::SwitchInfoRecord record{};
			record.lid = lid;
			record.info = node.switch_info;
			offer(switch_fields, record);
		});
	}

	void links()
	{
		each_port([&](PortRef ref, const PortData &port, ib::Lid lid) {
			if (!port.peer)
				return;
			ib::LinkRecord record{};
			record.from_lid = lid;
			record.from_port = ref.port;
			record.to_lid = lid_of(port.peer);
			record.to_port = port.peer.port;
			offer(link_fields, record);
		});
	}

	void linear_tables()
	{
		constexpr std::size_t per_block = sizeof(ib::LinearForwarding::port);
		each_switch([&](const Node &node, ib::Lid lid) {
			const Lft &lft = subnet_.lfts[static_cast<std::size_t>(node.switch_index)];
			for (std::size_t from = 0; from < lft.size(); from += per_block) {
				ib::LinearForwardingRecord record{};
				record.lid = lid;
				record.block = static_cast<std::uint16_t>(from / per_block);
				std::fill_n(record.table.port, per_block, ib::lft_drop);
				std::copy_n(lft.begin() + static_cast<std::ptrdiff_t>(from),
					    std::min(per_block, lft.size() - from),
					    record.table.port);
				offer(lid_block_fields, record);
			}
		});
	}

	void pkeys()
	{
		for (PortRef ref : subnet_.end_ports) {
			const PortData &port = subnet_.port(ref);
			for (std::size_t from = 0; from < port.pkeys.size(); from += 32) {
				ib::PkeyTableRecord record{};
				record.lid = port.lid;
				record.block = static_cast<std::uint16_t>(from / 32);
				record.port = ref.port;
				for (std::size_t i = from;
				     i < std::min(port.pkeys.size(), from + 32); i++)
					record.table.pkey[i - from] = port.pkeys[i];
				offer(pkey_fields, record);
			}
		}
	}

	void guids()
	{
		for (PortRef ref : subnet_.end_ports) {
			ib::GuidInfoRecord record{};
			record.lid = subnet_.port(ref).lid;
			record.info.guid[0] = subnet_.port(ref).guid;
			offer(guid_fields, record);
		}
	}

	void managers(const Config &config, ib::SmState state)
	{
		PortRef own = subnet_.find_port(config.guid + 1);
		if (!own)
			return;
		ib::SmInfoRecord record{};
		record.lid = subnet_.port(own).lid;
		record.info.guid = config.guid + 1;
		record.info.priority_state = static_cast<std::uint8_t>(
			config.priority << 4 | static_cast<unsigned>(state));
		offer(sm_fields, record);
	}

private:
	template<class Record>
	void offer(std::span<const Field> fields, const Record &record)
	{
		if (fields_match(fields, mad_.component_mask, mad_.data, &record))
			answer_.add(record);
	}

	ib::Lid lid_of(PortRef ref) const
	{
		const Node &node = subnet_.node(ref);
		return node.is_switch() ? node.ports[0].lid : node.ports[ref.port].lid;
	}

	template<class Fn>
	void each_port(Fn &&fn)
	{
		for (std::size_t i = 0; i < subnet_.nodes.size(); i++) {
			const Node &node = subnet_.nodes[i];
			for (std::size_t number = 0; number < node.ports.size(); number++) {
				PortRef ref{static_cast<int>(i), static_cast<std::uint8_t>(number)};
				if (node.ports[number].known)
					fn(ref, node.ports[number], lid_of(ref));
			}
		}
	}

	template<class Fn>
	void each_switch(Fn &&fn)
	{
		for (int index : subnet_.switches) {
			const Node &node = subnet_.nodes[static_cast<std::size_t>(index)];
			fn(node, node.ports[0].lid);
		}
	}

	const Subnet &subnet_;
	const ib::SaMad &mad_;
	RecordSet &answer_;
};

} // namespace

bool query_table(const Subnet &subnet, const Config &config, ib::SmState state,
		 const ib::SaMad &mad, bool trusted, RecordSet &answer)
{
	Tables tables(subnet, mad, answer);
	switch (mad.header.attr_id.value()) {
	case ib::attr_node_record:
		tables.nodes();
		return true;
	case ib::attr_port_info_record:
		tables.ports(trusted);
		return true;
	case ib::attr_switch_info_record:
		tables.switches();
		return true;
	case ib::attr_link_record:
		tables.links();
		return true;
	case ib::attr_linear_forwarding_record:
		tables.linear_tables();
		return true;
	case ib::attr_pkey_table_record:
		tables.pkeys();
		return true;
	case ib::attr_guid_info_record:
		tables.guids();
		return true;
	case ib::attr_sm_info_record:
		tables.managers(config, state);
		return true;
	default:
		return false;
	}
}

} // namespace weft::sm
