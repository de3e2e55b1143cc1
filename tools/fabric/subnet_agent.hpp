// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The subnet management agent of a node (IBA 14.3): it holds what PortInfo and its siblings say,
 * and answers Get and Set. What a Set does to the node itself goes through SubnetAgentHost. Used by
 * switches and software end nodes, and open to any other model of a node.
 */
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <ib/smp.hpp>

#include "fabric/mkey_guard.hpp"
#include "fabric/port.hpp"

namespace weft::fabric
{

/* The node behind an agent. Ports count from 1; port 0 is a switch's management port. */
class SubnetAgentHost
{
public:
	virtual ~SubnetAgentHost() = default;

	/* Called without the agent's lock. */
	virtual void enable_port(unsigned port, bool enable) = 0;
	virtual void retrain_port(unsigned port) = 0;

	/*
	 * Something in a port's attributes changed. Called with the agent's lock held: only note
	 * it.
	 */
	virtual void port_updated(unsigned port, const ib::PortInfo &info)
	{
		static_cast<void>(port), static_cast<void>(info);
	}
	virtual void pkeys_updated(unsigned port, const std::vector<ib::be16> &table)
	{
		static_cast<void>(port), static_cast<void>(table);
	}

	/* A switch's tables; false if there is no such block or port. */
	virtual bool read_lft(unsigned, ib::LinearForwarding &) { return false; }
	virtual bool write_lft(unsigned, const ib::LinearForwarding &) { return false; }
	virtual bool read_mft(unsigned, unsigned, ib::MulticastForwarding &) { return false; }
	virtual bool write_mft(unsigned, unsigned, const ib::MulticastForwarding &)
	{
		return false;
	}
	virtual bool read_sl_to_vl(unsigned, unsigned, ib::SlToVl &) { return false; }
	virtual bool write_sl_to_vl(unsigned, unsigned, const ib::SlToVl &) { return false; }
};

class SubnetAgent
{
public:
	struct Config {
		ib::NodeType type = ib::NodeType::channel_adapter;
		unsigned ports = 1;
		ib::Guid system_guid = 0;
		ib::Guid node_guid = 0;
		/* Of each port from port 0 on; a switch has one, for port 0. */
		std::vector<ib::Guid> port_guids;
		std::string description;
		std::uint16_t device_id = 0;
		std::uint32_t revision = 0;
		std::uint32_t vendor_id = 0;
		std::uint32_t capability_mask = 0;
		ib::Mtu mtu = ib::Mtu::mtu_4096;
		unsigned vl_cap = 4;
		/* Rounded up to whole blocks of 32. */
		unsigned pkey_entries = 32;
		/* Switch only. */
		unsigned lft_entries = 0;
		unsigned mft_entries = 0;
	};

	SubnetAgent(Config config, SubnetAgentHost &host);

	/* What becomes of an SMP. */
	struct Outcome {
		/* The SMP was turned into its answer in place (without direction bit). */
		bool reply = false;
		/* What the Set asks of the node, to be called once the answer is under way. */
		std::function<void()> after;
	};
	/*
	 * Answer Get or Set of an attribute other than SMInfo; anything else gets no reply.
	 * @in_port: the port that it came by (0: from the node itself). Any thread.
	 */
	Outcome handle(ib::Smp &smp, unsigned in_port);

	/* The link of an external port came or went. Returns the new state. */
	ib::PortState link_changed(unsigned port, bool up, const LinkRate &rate, ib::Mtu mtu);

	ib::PortInfo port_info(unsigned port) const;
	/* A software node manages its own port, as a driver does a card's. */
	void update_port_info(unsigned port, const std::function<void(ib::PortInfo &)> &change);
	/* The entry of a port's table that lets in packets with that P_Key (IBA 10.9.3). */
	std::optional<ib::Pkey> match_pkey(unsigned port, ib::Pkey pkey) const;
	ib::SlToVl sl_to_vl(unsigned port) const;
	ib::SwitchInfo switch_info() const;

private:
	struct PortData {
		ib::PortInfo info{};
		MkeyGuard guard;
		std::vector<ib::be16> pkeys;
		ib::GuidInfo guids{};
		ib::SlToVl sl_to_vl{};
		ib::VlArbitration vl_arb[4]{};
		bool exists = true;
	};
	/* Index of the answering port; IBA 14.2.5.6. */
	bool select_port(std::uint32_t modifier, unsigned in_port, unsigned &port) const;
	bool is_switch() const { return config_.type == ib::NodeType::switch_; }
	/* Port whose M_Key guards the node as seen from in_port. */
	PortData &key_port(unsigned in_port);
	std::uint16_t get(ib::Smp &smp, unsigned in_port);
	std::uint16_t set(ib::Smp &smp, unsigned in_port, std::function<void()> &after);
	std::uint16_t set_port_info(ib::Smp &smp, unsigned in_port, std::function<void()> &after);
	bool select_vl_arbitration(std::uint32_t modifier, unsigned in_port, unsigned &port,
				   unsigned &block) const;
	bool select_pkeys(std::uint32_t modifier, unsigned in_port, unsigned &port,
			  unsigned &block) const;

	const Config config_;
	SubnetAgentHost &host_;
	mutable std::mutex mutex_;
	std::vector<PortData> ports_;
	ib::SwitchInfo switch_info_{};
	ib::NodeDescription description_{};
};

} // namespace weft::fabric
