// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Writes the manager's configuration to the nodes, and remembers what it wrote, so that a later
 * sweep writes only the differences.
 */
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sm/mad_client.hpp"
#include "sm/routing.hpp"
#include "sm/subnet.hpp"

namespace weft::sm
{

/* A multicast LID and its tree. */
struct McRoute {
	ib::Lid mlid = 0;
	McTree tree;
};

class Configurator
{
public:
	Configurator(MadClient &client, const Config &config) : client_(client), config_(config) {}

	/* Another manager may have written: trust nothing, and have clients register anew. */
	void forget();

	/*
	 * Bring a discovered subnet with LIDs and routes into service: P_Keys, addresses, with
	 * which ports go from INIT to ARMED, tables, then ACTIVE. Updates the subnet's PortInfo to
	 * what the nodes answered. False if something did not answer or refused: worth another
	 * sweep.
	 */
	bool configure(Subnet &subnet, ib::Lid sm_lid, const std::vector<McRoute> &groups);

	/* Write the forwarding of some groups only, all others as they are. */
	bool write_multicast(const Subnet &subnet, const std::vector<McRoute> &groups);

	/* Contents of a switch's multicast tables, as far as it has confirmed them. */
	std::size_t multicast_blocks(const Node &node) const;
	static unsigned multicast_positions(const Node &node);
	ib::MulticastForwarding multicast_block(const Node &node, std::size_t block,
						unsigned position) const;
	/* The table that all ports get. */
	static ib::SlToVl sl_to_vl(const Config &config);

	/* P_Keys that a port shall have, the default partition's first. */
	std::vector<ib::Pkey> pkeys_of(ib::Guid port_guid) const;

private:
	struct SwitchTables {
		Lft lft;
		/*
		 * 16 ports a word: entry * positions + position; the wanted and the present
		 * contents.
		 */
		std::vector<std::uint16_t> mft_want;
		std::vector<std::uint16_t> mft_have;
		/* Entries of mft_have, a block of 32 each, that were confirmed. */
		std::vector<bool> mft_known;
	};

	/* Requests that were answered well; the others are logged and make the sweep incomplete. */
	void perform(std::vector<SmpRequest> &batch, const Subnet &subnet,
		     const std::vector<PortRef> &about);
	/*
	 * A port or switch that came up again, perhaps after a reset, has lost its configuration.
	 */
	void forget_restarted(const Subnet &subnet);
	void write_addresses(Subnet &subnet, ib::Lid sm_lid);
	void write_switch_info(Subnet &subnet);
	void write_lfts(const Subnet &subnet);
	void write_pkeys(Subnet &subnet);
	void write_sl_to_vl(const Subnet &subnet);
	static bool may_raise(const Subnet &subnet, PortRef ref, ib::PortState from);
	void raise_ports(Subnet &subnet, ib::PortState from, ib::PortState to);
	void plan_multicast(const Subnet &subnet, const McRoute &group);
	/* The node of a switch, a block of its multicast table, and a position in it. */
	using MftBlock = std::tuple<int, unsigned, unsigned>;
	void write_mfts(const Subnet &subnet);
	/* Writes those of @blocks that are not known to be there. */
	void write_mft_blocks(const Subnet &subnet, const std::set<MftBlock> &blocks);

	/*
	 * Port to which P_Keys are written: an end port, or the port of a switch that faces one,
	 * whose table is the end port's.
	 */
	struct PkeyTable {
		PortRef ref;
		/* The attribute modifier's upper half. */
		std::uint32_t modifier;
		unsigned capacity;
		const std::vector<ib::Pkey> *wanted;
	};
	using PortKey = std::pair<ib::Guid, std::uint8_t>;
	static PortKey key_of(const Subnet &subnet, PortRef ref)
	{
		return {subnet.node(ref).guid, ref.port};
	}
	/* The LID that lines about a port are logged under: its own, or its switch's. */
	static ib::Lid lid_of(const Subnet &subnet, PortRef ref)
	{
		const Node &node = subnet.node(ref);
		return node.ports[node.is_switch() ? 0 : ref.port].lid;
	}
	static bool faces_end_port(const Subnet &subnet, PortRef ref);
	/* Decides on the P_Keys of all end ports, too. */
	std::vector<PkeyTable> pkey_tables(Subnet &subnet) const;
	void read_pkeys(const Subnet &subnet, const std::vector<PkeyTable> &tables);
	/* Performs the batch and stores the tables that ports return. */
	void perform_pkeys(std::vector<SmpRequest> &batch, const Subnet &subnet,
			   const std::vector<PortRef> &about);
	/*
	 * A port of a switch that faces an end port passes nothing of other partitions, either
	 * way: the end port's own table is its owner's to change. Trunks carry all.
	 */
	static void agree_on_enforcement(const Subnet &subnet, PortRef ref, ib::PortInfo &info);

	/* Both ends of a link: the smaller of their capabilities. */
	void agree_on_link(const Subnet &subnet, PortRef ref, ib::PortInfo &info) const;

	MadClient &client_;
	const Config &config_;
	/* Keyed by node GUID. */
	std::unordered_map<ib::Guid, SwitchTables> tables_;
	/* GUIDs of ports that were asked to register with this manager. */
	std::unordered_set<ib::Guid> registered_;
	/* Keyed by node GUID and port: the present tables, in whole blocks. */
	std::map<PortKey, std::vector<ib::Pkey>> pkeys_;
	std::unordered_set<ib::Guid> sl_to_vl_written_;
	/* Blocks that plan_multicast() has changed. */
	std::set<MftBlock> mft_changes_;
	bool complete_ = true;
};

} // namespace weft::sm
