// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the subnet management agent of a switch or a software end node, with the ports that it
 * manages. All functions may be called on any thread.
 */
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/mutex.hpp"
#include "net/fabric/local_access.hpp"
#include "net/fabric/port.hpp"
#include "net/fabric/subnet_agent.hpp"

namespace weft::fabric
{

class NodeAgent
{
public:
	struct Config {
		NodeIdentity identity;
		unsigned ports = 1;
		/* GUIDs of a channel adapter's ports, or of a switch's port 0. */
		std::vector<ib::Guid> port_guids;
		std::uint32_t capability_mask = 0;
		ib::Mtu mtu = ib::Mtu::mtu_4096;
		unsigned vl_cap = 4;
		unsigned pkey_entries = kPkeysPerBlock;
		/* Switch only. */
		unsigned lft_entries = 0;
		unsigned mft_entries = 0;
		bool optimized_sl_to_vl = false;
	};

	/* @host is called with the agent's lock held, and must outlive the agent. */
	NodeAgent(Config config, SubnetAgentHost &host);

	/* See SubnetAgent::handle(). */
	SubnetAgent::Outcome handle(ib::Smp &smp, unsigned in_port);

	/* Must be called when the link of an external port has gone up or down. */
	void link_changed(unsigned port, bool up, const LinkRate &rate, ib::Mtu mtu);

	ib::PortInfo port_info(unsigned port) const;
	/* Changes a port's attributes, as a driver does for a card's port. */
	void update_port_info(unsigned port, const std::function<void(ib::PortInfo &)> &change);
	/* Returns the P_Key in a port's table that matches this one (IBA 10.9.3). */
	std::optional<ib::Pkey> match_pkey(unsigned port, ib::Pkey pkey) const;
	ib::SlToVl sl_to_vl(unsigned port) const;
	PortView view(unsigned port) const;

private:
	bool is_switch() const { return config_.identity.type == ib::NodeType::switch_; }
	std::vector<ManagedPort> make_ports() const;
	std::vector<ManagedPort *> managed() WEFT_REQUIRES(mutex_);

	const Config config_;
	SubnetAgentHost &host_;
	mutable Mutex mutex_;
	/* Indexed by port number; port 0 exists in a switch only. */
	std::vector<ManagedPort> ports_ WEFT_GUARDED_BY(mutex_);
	SubnetAgent agent_ WEFT_GUARDED_BY(mutex_);
};

} // namespace weft::fabric
