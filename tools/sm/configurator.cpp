// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/configurator.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weft::sm
{

namespace
{

using ib::MadMethod;
using ib::PortState;

constexpr unsigned kLftBlock = sizeof(ib::LinearForwarding::port);
/* 4.096 us * 2^18: about a second, for both lifetimes in a switch. */
constexpr unsigned kSwitchLifeTime = 18;
/* Every requester may read all attributes except the M_Key (IBA table 144). */
constexpr unsigned kMkeyProtect = 1;

SmpRequest &add(std::vector<SmpRequest> &batch, const Path &path, std::uint16_t attribute,
		std::uint32_t modifier)
{
	return batch.emplace_back(path, MadMethod::set, attribute, modifier);
}

unsigned mft_positions(const Node &node)
{
	return node.info.num_ports / 16u + 1u;
}

} // namespace

void Configurator::forget()
{
	tables_.clear();
	registered_.clear();
	pkeys_.clear();
	sl_to_vl_written_.clear();
}

bool Configurator::configure(Subnet &subnet, ib::Lid sm_lid, const std::vector<McRoute> &groups)
{
	complete_ = true;
	forget_restarted(subnet);
	/* Write P_Keys before switches are configured to enforce them. */
	write_pkeys(subnet);
	write_addresses(subnet, sm_lid);
	write_switch_info(subnet);
	write_lfts(subnet);
	write_sl_to_vl(subnet);
	for (auto &[guid, tables] : tables_)
		std::fill(tables.mft_want.begin(), tables.mft_want.end(), 0);
	mft_changes_.clear();
	for (const McRoute &group : groups)
		plan_multicast(subnet, group);
	write_mfts(subnet);
	raise_ports(subnet, PortState::init, PortState::armed);
	raise_ports(subnet, PortState::armed, PortState::active);
	return complete_;
}

bool Configurator::write_multicast(const Subnet &subnet, const std::vector<McRoute> &groups)
{
	complete_ = true;
	mft_changes_.clear();
	for (const McRoute &group : groups)
		plan_multicast(subnet, group);
	write_mft_blocks(subnet, mft_changes_);
	return complete_;
}

void Configurator::perform(std::vector<SmpRequest> &batch, const Subnet &subnet,
			   const std::vector<PortRef> &about)
{
	for (std::size_t i = 0; i < batch.size(); i++)
		if (batch[i].method == MadMethod::set)
			batch[i].mkey = config_.key_of(subnet.port(about[i]).guid);
	client_.perform(batch);
	for (std::size_t i = 0; i < batch.size(); i++) {
		if (batch[i].ok())
			continue;
		complete_ = false;
		if (batch[i].answered)
			client_.log().warn(lid_of(subnet, about[i]), client_.now(),
					   "{} GUID {:#018x} port {} refuses attribute {:#06x}: "
					   "status {:#06x}",
					   subnet.node(about[i]).printable_name(),
					   subnet.node(about[i]).guid, about[i].port,
					   batch[i].attribute, batch[i].status);
	}
}

void Configurator::agree_on_link(const Subnet &subnet, PortRef ref, ib::PortInfo &info) const
{
	PortRef peer = subnet.port(ref).peer;
	/* An active link is not changed, because that would take it down. */
	if (!peer || !subnet.port(peer).known || info.state() != PortState::init)
		return;
	const ib::PortInfo &other = subnet.port(peer).info;
	info.set_neighbor_mtu(std::min(info.mtu_cap(), other.mtu_cap()));
	info.set_operational_vls(
		std::min({unsigned{info.vl_cap()}, unsigned{other.vl_cap()}, config_.vls}));
	if (subnet.node(ref).is_switch())
		info.vl_stall_hoq_life =
			ib::field_set<4, 0>(info.vl_stall_hoq_life, kSwitchLifeTime);
}

void Configurator::forget_restarted(const Subnet &subnet)
{
	for (std::size_t i = 0; i < subnet.nodes.size(); i++) {
		const Node &node = subnet.nodes[i];
		/*
		 * Port 0 is always active. A switch without a LID was reset and has also lost its
		 * tables.
		 */
		if (node.is_switch() && node.ports[0].known && node.ports[0].info.lid == 0) {
			tables_.erase(node.guid);
			sl_to_vl_written_.erase(node.guid);
			registered_.erase(node.ports[0].guid);
			pkeys_.erase({node.guid, std::uint8_t{0}});
		}
		for (std::size_t number = 0; number < node.ports.size(); number++) {
			const PortData &port = node.ports[number];
			if (!port.known || port.info.state() != PortState::init)
				continue;
			pkeys_.erase(key_of(
				subnet, {static_cast<int>(i), static_cast<std::uint8_t>(number)}));
			if (port.guid == 0)
				continue;
			registered_.erase(port.guid);
			sl_to_vl_written_.erase(node.guid);
		}
	}
}

void Configurator::write_addresses(Subnet &subnet, ib::Lid sm_lid)
{
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (std::size_t i = 0; i < subnet.nodes.size(); i++) {
		const Node &node = subnet.nodes[i];
		for (std::size_t number = 0; number < node.ports.size(); number++) {
			PortRef ref{static_cast<int>(i), static_cast<std::uint8_t>(number)};
			const PortData &port = node.ports[number];
			if (!port.known)
				continue;
			ib::PortInfo have = port.info;
			bool end_port = port.guid != 0;
			bool keyed = end_port && config_.untrusted.contains(port.guid);
			/*
			 * At this protection level, a requester without the M_Key does not see it.
			 */
			if (keyed && have.mkey_protect() == kMkeyProtect)
				have.mkey = config_.mkey;
			ib::PortInfo want = have;
			if (end_port && port.lid != 0) {
				want.lid = port.lid;
				want.set_lmc(port.lmc);
				want.sm_lid = sm_lid;
				want.set_sm_sl(0);
				want.gid_prefix = config_.gid_prefix;
				want.set_subnet_timeout(kSwitchLifeTime);
			}
			if (keyed) {
				want.mkey = config_.mkey;
				want.set_mkey_protect(kMkeyProtect);
				want.mkey_lease_period = std::uint16_t{0};
			}
			agree_on_link(subnet, ref, want);
			agree_on_enforcement(subnet, ref, want);
			const bool arms = may_raise(subnet, ref, PortState::init);
			bool newcomer = end_port && !registered_.contains(port.guid);
			if (!arms && std::memcmp(&want, &have, sizeof(want)) == 0 && !newcomer)
				continue;
			/*
			 * IBA 14.4.11: a client that this manager does not know yet has to
			 * subscribe and join again.
			 */
			want.set_client_reregister(
				newcomer &&
				(want.capability_mask & ib::port_cap_client_reregistration) != 0);
			want.set_state(arms ? PortState::armed : PortState::nop);
			want.set_phys_state(ib::PhysState::nop);
			add(batch, subnet.route(ref), ib::attr_port_info, ref.port).with(want);
			about.push_back(ref);
		}
	}
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++) {
		if (!batch[i].ok())
			continue;
		PortData &port = subnet.port(about[i]);
		port.info = batch[i].answer<ib::PortInfo>();
		port.info.set_client_reregister(false);
		if (port.guid != 0)
			registered_.insert(port.guid);
	}
	/* If a port has disappeared, its clients must register again when it returns. */
	std::erase_if(registered_, [&](ib::Guid guid) { return !subnet.find_port(guid); });
}

void Configurator::write_switch_info(Subnet &subnet)
{
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (int index : subnet.switches) {
		Node &node = subnet.nodes[static_cast<std::size_t>(index)];
		ib::SwitchInfo want = node.switch_info;
		want.linear_fdb_top = subnet.top_lid;
		want.set_life_time(kSwitchLifeTime);
		/* Writing zero does not clear the bit. */
		want.life_time_state_change &=
			static_cast<std::uint8_t>(~ib::SwitchInfo::state_change_bit);
		if (want.linear_fdb_top == node.switch_info.linear_fdb_top &&
		    want.life_time() == node.switch_info.life_time())
			continue;
		batch.push_back(
			SmpRequest(node.path, MadMethod::set, ib::attr_switch_info).with(want));
		about.push_back({index, 0});
	}
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++)
		if (batch[i].ok())
			subnet.node(about[i]).switch_info = batch[i].answer<ib::SwitchInfo>();
}

void Configurator::write_lfts(const Subnet &subnet)
{
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (std::size_t index = 0; index < subnet.switches.size(); index++) {
		PortRef ref{subnet.switches[index], 0};
		const Node &node = subnet.node(ref);
		const Lft &want = subnet.lfts[index];
		Lft &have = tables_[node.guid].lft;
		unsigned blocks = (subnet.top_lid + kLftBlock) / kLftBlock;
		for (unsigned block = 0; block < blocks; block++) {
			ib::LinearForwarding table;
			std::memset(table.port, ib::lft_drop, sizeof(table.port));
			std::size_t from = block * kLftBlock;
			std::size_t count = std::min<std::size_t>(kLftBlock, want.size() - from);
			std::copy_n(want.begin() + static_cast<std::ptrdiff_t>(from), count,
				    table.port);
			if (have.size() >= from + kLftBlock &&
			    std::equal(std::begin(table.port), std::end(table.port),
				       have.begin() + static_cast<std::ptrdiff_t>(from)))
				continue;
			add(batch, node.path, ib::attr_linear_forwarding, block).with(table);
			about.push_back(ref);
		}
	}
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++) {
		Lft &have = tables_[subnet.node(about[i]).guid].lft;
		std::size_t from = batch[i].modifier * kLftBlock;
		if (!batch[i].ok()) {
			/* The contents from this block on are unknown. */
			have.resize(std::min(have.size(), from));
			continue;
		}
		if (have.size() < from)
			continue;
		have.resize(std::max(have.size(), from + kLftBlock));
		const auto &table = batch[i].answer<ib::LinearForwarding>();
		std::copy(std::begin(table.port), std::end(table.port),
			  have.begin() + static_cast<std::ptrdiff_t>(from));
	}
}

ib::SlToVl Configurator::sl_to_vl(const Config &config)
{
	const unsigned vls = std::max(1u, ib::vl_count(config.vls));
	ib::SlToVl table{};
	for (unsigned sl = 0; sl < 16; sl++)
		table.set_vl(sl, sl % vls);
	return table;
}

std::size_t Configurator::multicast_blocks(const Node &node) const
{
	const auto tables = tables_.find(node.guid);
	return tables == tables_.end() ? 0
				       : tables->second.mft_have.size() / mft_positions(node) / 32;
}

unsigned Configurator::multicast_positions(const Node &node)
{
	return mft_positions(node);
}

ib::MulticastForwarding Configurator::multicast_block(const Node &node, std::size_t block,
						      unsigned position) const
{
	ib::MulticastForwarding table{};
	const auto tables = tables_.find(node.guid);
	const unsigned positions = mft_positions(node);
	for (std::size_t i = 0; i < std::size(table.ports); i++) {
		const std::size_t at = (block * std::size(table.ports) + i) * positions + position;
		if (tables != tables_.end() && at < tables->second.mft_have.size())
			table.ports[i] = tables->second.mft_have[at];
	}
	return table;
}

void Configurator::write_sl_to_vl(const Subnet &subnet)
{
	/* With one data VL, the initial tables, which map all SLs to VL 0, are correct. */
	if (ib::vl_count(config_.vls) <= 1)
		return;
	const ib::SlToVl table = sl_to_vl(config_);
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (std::size_t i = 0; i < subnet.nodes.size(); i++) {
		const Node &node = subnet.nodes[i];
		if (sl_to_vl_written_.contains(node.guid))
			continue;
		auto ask = [&](PortRef ref, std::uint32_t modifier) {
			batch.push_back(SmpRequest(subnet.route(ref), MadMethod::set,
						   ib::attr_sl_to_vl, modifier)
						.with(table));
			about.push_back(ref);
		};
		const bool at_once = node.is_switch() && (node.switch_info.life_time_state_change &
							  ib::SwitchInfo::optimized_sl_to_vl) != 0;
		if (at_once)
			ask({static_cast<int>(i), 0},
			    ib::sl_to_vl_all_inputs | ib::sl_to_vl_all_outputs);
		for (unsigned out = 0; out < node.ports.size(); out++) {
			PortRef ref{static_cast<int>(i), static_cast<std::uint8_t>(out)};
			if (!node.is_switch()) {
				if (node.ports[out].known)
					ask(ref, 0);
				continue;
			}
			for (unsigned in = 0; !at_once && in < node.ports.size(); in++)
				if (in != out)
					ask(ref, in << 8 | out);
		}
	}
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++)
		sl_to_vl_written_.insert(subnet.node(about[i]).guid);
	for (std::size_t i = 0; i < batch.size(); i++)
		if (!batch[i].ok())
			sl_to_vl_written_.erase(subnet.node(about[i]).guid);
}

/*
 * Returns true if the state of the port may be raised from @from. Both ends of a link must be
 * known, because their states are raised together.
 */
bool Configurator::may_raise(const Subnet &subnet, PortRef ref, PortState from)
{
	const PortData &port = subnet.port(ref);
	return ref.port != 0 && port.known && port.peer && subnet.port(port.peer).known &&
	       port.info.state() == from;
}

void Configurator::raise_ports(Subnet &subnet, PortState from, PortState to)
{
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (std::size_t i = 0; i < subnet.nodes.size(); i++) {
		const Node &node = subnet.nodes[i];
		for (std::size_t number = 1; number < node.ports.size(); number++) {
			PortRef ref{static_cast<int>(i), static_cast<std::uint8_t>(number)};
			if (!may_raise(subnet, ref, from))
				continue;
			const PortData &port = node.ports[number];
			ib::PortInfo want = port.info;
			want.set_state(to);
			want.set_phys_state(ib::PhysState::nop);
			add(batch, subnet.route(ref), ib::attr_port_info, ref.port).with(want);
			about.push_back(ref);
		}
	}
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++) {
		if (!batch[i].ok())
			continue;
		PortData &port = subnet.port(about[i]);
		port.info = batch[i].answer<ib::PortInfo>();
		if (to == PortState::active && port.guid != 0)
			client_.log().info(
				port.lid, client_.now(), "{} port GUID {:#018x} is active, LID {}",
				subnet.node(about[i]).printable_name(), port.guid, port.lid);
	}
}

void Configurator::plan_multicast(const Subnet &subnet, const McRoute &group)
{
	unsigned entry = group.mlid - ib::lid_multicast_first;
	for (std::size_t index = 0; index < subnet.switches.size(); index++) {
		const Node &node = subnet.nodes[static_cast<std::size_t>(subnet.switches[index])];
		unsigned positions = mft_positions(node);
		SwitchTables &tables = tables_[node.guid];
		std::size_t needed = (entry / 32 + 1) * 32 * positions;
		/*
		 * A block that is used for the first time may have entries of an earlier manager,
		 * also in switches that do not belong to the tree.
		 */
		if (tables.mft_want.size() < needed) {
			const auto first =
				static_cast<unsigned>(tables.mft_want.size() / positions / 32);
			for (unsigned block = first; block <= entry / 32; block++)
				for (unsigned position = 0; position < positions; position++)
					mft_changes_.insert(
						{subnet.switches[index], block, position});
			tables.mft_want.resize(needed);
		}
		const PortMask &mask = group.tree[index];
		for (unsigned position = 0; position < positions; position++) {
			std::uint64_t word = position / 4 < mask.size() ? mask[position / 4] : 0;
			const auto ports = static_cast<std::uint16_t>(word >> position % 4 * 16);
			std::uint16_t &want = tables.mft_want[entry * positions + position];
			if (std::exchange(want, ports) != ports)
				mft_changes_.insert({subnet.switches[index], entry / 32, position});
		}
	}
}

/* Writes the blocks of all switches whose contents are not confirmed. */
void Configurator::write_mfts(const Subnet &subnet)
{
	std::set<MftBlock> blocks;
	for (int index : subnet.switches) {
		const Node &node = subnet.nodes[static_cast<std::size_t>(index)];
		const unsigned positions = mft_positions(node);
		const std::size_t count = tables_[node.guid].mft_want.size() / positions / 32;
		for (unsigned block = 0; block < count; block++)
			for (unsigned position = 0; position < positions; position++)
				blocks.insert({index, block, position});
	}
	write_mft_blocks(subnet, blocks);
}

void Configurator::write_mft_blocks(const Subnet &subnet, const std::set<MftBlock> &blocks)
{
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (const auto &[node_index, block, position] : blocks) {
		const Node &node = subnet.nodes[static_cast<std::size_t>(node_index)];
		const unsigned positions = mft_positions(node);
		SwitchTables &tables = tables_[node.guid];
		tables.mft_have.resize(tables.mft_want.size());
		tables.mft_known.resize(tables.mft_want.size() / 32);
		ib::MulticastForwarding want;
		bool same = tables.mft_known[block * positions + position];
		for (unsigned i = 0; i < 32; i++) {
			std::size_t at = (block * 32 + i) * positions + position;
			want.ports[i] = tables.mft_want[at];
			same = same && tables.mft_want[at] == tables.mft_have[at];
		}
		if (same)
			continue;
		batch.push_back(SmpRequest(node.path, MadMethod::set, ib::attr_multicast_forwarding,
					   position << 28 | block)
					.with(want));
		about.push_back({node_index, 0});
	}
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++) {
		const Node &node = subnet.node(about[i]);
		unsigned positions = mft_positions(node);
		SwitchTables &tables = tables_[node.guid];
		std::size_t block = batch[i].modifier & 0x1ff;
		unsigned position = batch[i].modifier >> 28;
		tables.mft_known[block * positions + position] = batch[i].ok();
		if (!batch[i].ok())
			continue;
		const auto &table = batch[i].answer<ib::MulticastForwarding>();
		for (unsigned j = 0; j < 32; j++)
			tables.mft_have[(block * 32 + j) * positions + position] = table.ports[j];
	}
}

} // namespace weft::sm
