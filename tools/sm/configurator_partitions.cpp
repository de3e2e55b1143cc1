// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Configures partitions: the P_Key table of a port, and partition enforcement on the neighbouring
// switch port.
#include "sm/configurator.hpp"

#include <algorithm>

namespace weft::sm
{

namespace
{

using ib::MadMethod;

constexpr unsigned kPkeysPerBlock = 32;

unsigned blocks_for(std::size_t entries)
{
	return static_cast<unsigned>((entries + kPkeysPerBlock - 1) / kPkeysPerBlock);
}

/*
 * Changes the table to exactly the wanted keys, as far as there is space. Keys keep their
 * positions, because QPs refer to them by index. The first wanted key gets the first position.
 * Returns false if there was not enough space.
 */
bool arrange(std::vector<ib::Pkey> &table, const std::vector<ib::Pkey> &wanted)
{
	for (ib::Pkey &entry : table)
		if (std::find(wanted.begin(), wanted.end(), entry) == wanted.end())
			entry = 0;
	if (table[0] != wanted[0]) {
		std::replace(table.begin(), table.end(), wanted[0], ib::Pkey{0});
		if (table[0] != 0)
			if (auto free = std::find(table.begin() + 1, table.end(), 0);
			    free != table.end())
				*free = table[0];
		table[0] = wanted[0];
	}
	for (ib::Pkey pkey : wanted) {
		if (std::find(table.begin(), table.end(), pkey) != table.end())
			continue;
		auto free = std::find(table.begin(), table.end(), 0);
		if (free == table.end())
			return false;
		*free = pkey;
	}
	return true;
}

} // namespace

std::vector<ib::Pkey> Configurator::pkeys_of(ib::Guid port_guid) const
{
	std::vector<ib::Pkey> pkeys;
	for (const Partition &partition : config_.partitions) {
		auto listed = partition.members.find(port_guid);
		auto membership =
			listed == partition.members.end() ? partition.others : listed->second;
		/* The manager itself is in every partition, because it serves all members. */
		if (port_guid == config_.guid + 1)
			membership = Partition::Membership::full;
		ib::Pkey base = ib::pkey_base(partition.pkey);
		if (membership == Partition::Membership::full)
			pkeys.push_back(static_cast<ib::Pkey>(base | ib::pkey_full_bit));
		else if (membership == Partition::Membership::limited)
			pkeys.push_back(base);
	}
	/* Every port is at least a limited member of the default partition, IBA 10.9.1.1. */
	if (std::none_of(pkeys.begin(), pkeys.end(), [](ib::Pkey pkey) {
		    return ib::pkey_base(pkey) == ib::pkey_default_limited;
	    }))
		pkeys.push_back(ib::pkey_default_limited);
	auto by_default = std::find_if(pkeys.begin(), pkeys.end(), [](ib::Pkey pkey) {
		return ib::pkey_base(pkey) == ib::pkey_default_limited;
	});
	std::rotate(pkeys.begin(), by_default, by_default + 1);
	return pkeys;
}

bool Configurator::faces_end_port(const Subnet &subnet, PortRef ref)
{
	PortRef peer = subnet.port(ref).peer;
	return subnet.node(ref).is_switch() && ref.port != 0 && peer &&
	       !subnet.node(peer).is_switch();
}

std::vector<Configurator::PkeyTable> Configurator::pkey_tables(Subnet &subnet) const
{
	std::vector<PkeyTable> tables;
	for (PortRef ref : subnet.end_ports) {
		PortData &port = subnet.port(ref);
		port.pkeys = pkeys_of(port.guid);
		tables.push_back({ref, 0, subnet.node(ref).info.partition_cap, &port.pkeys});
	}
	for (int index : subnet.switches) {
		const Node &node = subnet.nodes[static_cast<std::size_t>(index)];
		for (std::size_t number = 1; number < node.ports.size(); number++) {
			PortRef ref{index, static_cast<std::uint8_t>(number)};
			if (!faces_end_port(subnet, ref))
				continue;
			/*
			 * A port that has not identified itself, or that uses another port's GUID,
			 * does not belong to the subnet, so no P_Key is allowed for it.
			 */
			const PortData &peer = subnet.port(subnet.port(ref).peer);
			if (!peer.pkeys.empty())
				tables.push_back(
					{ref, static_cast<std::uint32_t>(number) << 16,
					 node.switch_info.partition_enforcement_cap.value(),
					 &peer.pkeys});
		}
	}
	return tables;
}

void Configurator::read_pkeys(const Subnet &subnet, const std::vector<PkeyTable> &tables)
{
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (const PkeyTable &table : tables) {
		auto &known = pkeys_[key_of(subnet, table.ref)];
		/* One block more than the keys need, because removed keys leave gaps. */
		unsigned blocks = std::min(std::max(1u, blocks_for(table.capacity)),
					   blocks_for(table.wanted->size() + 1));
		if (known.size() >= blocks * kPkeysPerBlock)
			continue;
		known.assign(blocks * kPkeysPerBlock, 0);
		for (unsigned block = 0; block < blocks; block++) {
			batch.emplace_back(subnet.route(table.ref), MadMethod::get,
					   ib::attr_pkey_table, table.modifier | block);
			about.push_back(table.ref);
		}
	}
	perform_pkeys(batch, subnet, about);
}

void Configurator::perform_pkeys(std::vector<SmpRequest> &batch, const Subnet &subnet,
				 const std::vector<PortRef> &about)
{
	perform(batch, subnet, about);
	for (std::size_t i = 0; i < batch.size(); i++) {
		auto known = pkeys_.find(key_of(subnet, about[i]));
		if (known == pkeys_.end())
			continue;
		std::size_t from = (batch[i].modifier & 0xffff) * kPkeysPerBlock;
		if (!batch[i].ok()) {
			pkeys_.erase(known);
			continue;
		}
		const auto &table = batch[i].answer<ib::PkeyTable>();
		std::copy(std::begin(table.pkey), std::end(table.pkey),
			  known->second.begin() + static_cast<std::ptrdiff_t>(from));
	}
}

void Configurator::write_pkeys(Subnet &subnet)
{
	const std::vector<PkeyTable> tables = pkey_tables(subnet);
	read_pkeys(subnet, tables);
	std::vector<SmpRequest> batch;
	std::vector<PortRef> about;
	for (const PkeyTable &table : tables) {
		auto known = pkeys_.find(key_of(subnet, table.ref));
		if (known == pkeys_.end())
			continue;
		std::vector<ib::Pkey> want = known->second;
		if (!arrange(want, *table.wanted))
			client_.log().warn(lid_of(subnet, table.ref), client_.now(),
					   "{} GUID {:#018x} port {} has no space for {} P_Keys",
					   subnet.node(table.ref).printable_name(),
					   subnet.node(table.ref).guid, table.ref.port,
					   table.wanted->size());
		for (unsigned block = 0; block < want.size() / kPkeysPerBlock; block++) {
			auto from = want.begin() + block * kPkeysPerBlock;
			if (std::equal(from, from + kPkeysPerBlock,
				       known->second.begin() + block * kPkeysPerBlock))
				continue;
			ib::PkeyTable attribute;
			std::copy_n(from, kPkeysPerBlock, attribute.pkey);
			batch.push_back(SmpRequest(subnet.route(table.ref), MadMethod::set,
						   ib::attr_pkey_table, table.modifier | block)
						.with(attribute));
			about.push_back(table.ref);
		}
	}
	perform_pkeys(batch, subnet, about);
}

void Configurator::agree_on_enforcement(const Subnet &subnet, PortRef ref, ib::PortInfo &info)
{
	const Node &node = subnet.node(ref);
	if (!node.is_switch() || ref.port == 0 || !subnet.port(ref).peer)
		return;
	std::uint8_t enforced = 0;
	if (faces_end_port(subnet, ref)) {
		if (node.switch_info.enforcement_flags & ib::SwitchInfo::inbound_enforcement_cap)
			enforced |= ib::PortInfo::enforce_inbound;
		if (node.switch_info.enforcement_flags & ib::SwitchInfo::outbound_enforcement_cap)
			enforced |= ib::PortInfo::enforce_outbound;
	}
	constexpr auto both = ib::PortInfo::enforce_inbound | ib::PortInfo::enforce_outbound;
	info.vl_oper_enforcement =
		static_cast<std::uint8_t>((info.vl_oper_enforcement & ~both) | enforced);
}

} // namespace weft::sm
