// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Writes the manager's configuration to the nodes. It stores what it has written, so that a later
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

	/*
	 * Discards what is known, because another manager may have changed the configuration, and
	 * makes clients register again.
	 */
	void forget();

	/*
	 * Configures a discovered subnet with LIDs and routes. First writes P_Keys, then addresses,
	 * which moves ports from INIT to ARMED, and then tables, and moves ports to ACTIVE. Updates
	 * the subnet's PortInfo from the responses. Returns false if a node did not respond or
	 * refused, so that another sweep is needed.
	 */
	bool configure(Subnet &subnet, ib::Lid sm_lid, const std::vector<McRoute> &groups);

	/* Writes the multicast forwarding of these groups only. */
	bool write_multicast(const Subnet &subnet, const std::vector<McRoute> &groups);

	/* Returns the contents of a switch's multicast tables that it has confirmed. */
	std::size_t multicast_blocks(const Node &node) const;
	static unsigned multicast_positions(const Node &node);
	ib::MulticastForwarding multicast_block(const Node &node, std::size_t block,
						unsigned position) const;
	/* Returns the table for all ports. */
	static ib::SlToVl sl_to_vl(const Config &config);

	/* Returns the P_Keys of a port. The P_Key of the default partition is the first. */
	std::vector<ib::Pkey> pkeys_of(ib::Guid port_guid) const;

private:
	struct SwitchTables {
		Lft lft;
		/*
		 * Wanted and current contents. A word has the bits of 16 ports; its index is entry
		 * * positions + position.
		 */
		std::vector<std::uint16_t> mft_want;
		std::vector<std::uint16_t> mft_have;
		/* For each block of 32 entries of mft_have, true if it was confirmed. */
		std::vector<bool> mft_known;
	};

	/* Sends the requests. Failed ones are logged, and make the sweep incomplete. */
	void perform(std::vector<SmpRequest> &batch, const Subnet &subnet,
		     const std::vector<PortRef> &about);
	/*
	 * Discards what is known about ports and switches that have come up again, because they may
	 * have been reset.
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
	/* Writes the blocks of @blocks that are not confirmed. */
	void write_mft_blocks(const Subnet &subnet, const std::set<MftBlock> &blocks);

	/*
	 * A P_Key table to be written: that of an end port, or of the switch port that faces one,
	 * which gets the same keys.
	 */
	struct PkeyTable {
		PortRef ref;
		/* The upper half of the attribute modifier, which selects the table. */
		std::uint32_t modifier;
		unsigned capacity;
		const std::vector<ib::Pkey> *wanted;
	};
	using PortKey = std::pair<ib::Guid, std::uint8_t>;
	static PortKey key_of(const Subnet &subnet, PortRef ref)
	{
		return {subnet.node(ref).guid, ref.port};
	}
	/* Returns the LID that log lines about a port contain: its own, or its switch's. */
	static ib::Lid lid_of(const Subnet &subnet, PortRef ref)
	{
		const Node &node = subnet.node(ref);
		return node.ports[node.is_switch() ? 0 : ref.port].lid;
	}
	static bool faces_end_port(const Subnet &subnet, PortRef ref);
	/* Returns the tables to be written. Also sets the P_Keys of each end port. */
	std::vector<PkeyTable> pkey_tables(Subnet &subnet) const;
	void read_pkeys(const Subnet &subnet, const std::vector<PkeyTable> &tables);
	/* Performs the batch and stores the tables that ports return. */
	void perform_pkeys(std::vector<SmpRequest> &batch, const Subnet &subnet,
			   const std::vector<PortRef> &about);
	/*
	 * Enables partition enforcement in both directions on switch ports that face end ports,
	 * because the owner of an end port can change the port's own table. Ports between switches
	 * carry all partitions.
	 */
	static void agree_on_enforcement(const Subnet &subnet, PortRef ref, ib::PortInfo &info);

	/* Limits the attributes to the capabilities that both ends of a link have. */
	void agree_on_link(const Subnet &subnet, PortRef ref, ib::PortInfo &info) const;

	MadClient &client_;
	const Config &config_;
	/* Keyed by node GUID. */
	std::unordered_map<ib::Guid, SwitchTables> tables_;
	/* GUIDs of ports whose clients were asked to register with this manager. */
	std::unordered_set<ib::Guid> registered_;
	/* Current tables in whole blocks, keyed by node GUID and port. */
	std::map<PortKey, std::vector<ib::Pkey>> pkeys_;
	std::unordered_set<ib::Guid> sl_to_vl_written_;
	/* Blocks that plan_multicast() has changed and that must be written. */
	std::set<MftBlock> mft_changes_;
	bool complete_ = true;
};

} // namespace weft::sm
