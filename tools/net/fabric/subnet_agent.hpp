// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Implements the subnet management agent (IBA 14.3), which is the same for cards, switches and
 * software end nodes. It answers Get and Set of the attributes of a node and its ports. It passes
 * the effects of a Set on the node itself to SubnetAgentHost.
 */
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ib/smp.hpp>

#include "base/environment.hpp"
#include "net/fabric/local_access.hpp"
#include "net/fabric/managed_port.hpp"

namespace weft::fabric
{

/* A node's identity, as NodeInfo and NodeDescription report it. */
struct NodeIdentity {
	ib::NodeType type = ib::NodeType::channel_adapter;
	ib::Guid node_guid = 0;
	ib::Guid system_image_guid = 0;
	std::uint32_t vendor_id = 0;
	std::uint16_t device_id = 0;
	std::uint32_t revision = 0;
	std::string description;
	/*
	 * True if the node supports attr_mlnx_extended_port_info, which reports that no extended
	 * speed is active.
	 */
	bool extended_port_info = false;
};

/*
 * The node of an agent. The agent calls these functions during a Set, after the change, with the
 * lock that protects the agent held. They may therefore only record the change.
 */
class SubnetAgentHost
{
public:
	virtual ~SubnetAgentHost() = default;

	/* Returns the node's time. */
	virtual Clock::time_point now() const = 0;

	/*
	 * PortInfo of @port has changed from @before. @reregister: the clients must register again;
	 * this bit is not stored.
	 */
	virtual void port_info_set(const ManagedPort &port, const ib::PortInfo &before,
				   bool reregister) = 0;
	/* Entries of a block have changed. @changed has a bit for each of them. */
	virtual void pkeys_set(const ManagedPort &port, unsigned block, std::uint32_t changed)
	{
		static_cast<void>(port), static_cast<void>(block), static_cast<void>(changed);
	}
	virtual void guids_set(const ManagedPort &port, std::uint32_t changed)
	{
		static_cast<void>(port), static_cast<void>(changed);
	}
	virtual void sl_to_vl_set(const ManagedPort &port) { static_cast<void>(port); }

	/* Access a switch's tables. Return false if there is no such block or port. */
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
	/*
	 * @ports is indexed by port number. Entry 0 is a switch's management port, and null for a
	 * channel adapter. All arguments must outlive the agent. The caller must serialise calls.
	 */
	SubnetAgent(const NodeIdentity &identity, std::vector<ManagedPort *> ports,
		    SubnetAgentHost &host);

	enum class Verdict : std::uint8_t {
		/* Not for the agent; see smp_request(). */
		foreign,
		/* The SMP was replaced by the response, without direction bit. */
		answered,
		/* Wrong M_Key: no response (IBA 14.2.4). */
		denied,
		/* A TrapRepress, which ends the node's trap with this TID, if there is one. */
		trap_repress,
	};
	struct Outcome {
		Verdict verdict = Verdict::foreign;
		/*
		 * Change of the link of @port that the Set requests. It is executed after the
		 * response was sent, because the response may have to cross the link.
		 */
		LinkOrder link = LinkOrder::none;
		unsigned port = 0;
	};
	/*
	 * @in_port: the port by which the SMP arrived (0: the switch itself). @own: the SMP is from
	 * the node's own driver, without M_Key (MkeyGuard::admits()).
	 */
	Outcome handle(ib::Smp &smp, unsigned in_port, bool own = false);

	ib::SwitchInfo &switch_info() { return switch_info_; }
	/* Returns the attributes of an end port, or of a switch's port 0. */
	PortView view(unsigned number) const;

private:
	bool is_switch() const { return identity_.type == ib::NodeType::switch_; }
	/* Returns the port that has the M_Key of the node, for an SMP that arrived by @in_port. */
	ManagedPort &node_port(unsigned in_port) const
	{
		return *ports_[is_switch() ? 0 : in_port];
	}
	/*
	 * Return the port that a modifier selects, or the port and the block of a table. Return
	 * null if there is none. For a channel adapter, port 0 means the port by which the SMP
	 * arrived.
	 */
	ManagedPort *select_port(unsigned number, unsigned in_port);
	ManagedPort *select_pkeys(std::uint32_t modifier, unsigned in_port, unsigned &block);
	ManagedPort *select_vl_arbitration(std::uint32_t modifier, unsigned in_port,
					   unsigned &block);

	std::uint16_t get(ib::Smp &smp, unsigned in_port);
	std::uint16_t set(const ib::Smp &smp, unsigned in_port, Outcome &outcome);
	ib::NodeInfo node_info(unsigned in_port) const;
	bool set_sl_to_vl(std::uint32_t modifier, const ib::SlToVl &table);
	std::uint16_t set_switch_info(const ib::SwitchInfo &wanted);
	std::uint16_t set_guids(ManagedPort &port, const ib::GuidInfo &wanted);
	std::uint16_t set_port_info(ManagedPort &port, const ib::PortInfo &wanted,
				    Outcome &outcome);
	void set_pkeys(ManagedPort &port, unsigned block, const ib::PkeyTable &wanted);

	const NodeIdentity &identity_;
	const std::vector<ManagedPort *> ports_;
	SubnetAgentHost &host_;
	ib::SwitchInfo switch_info_{};
};

/* Executes a requested change of the link of @port, whose attributes are @info. */
void carry_out(LinkOrder order, Port &port, const ib::PortInfo &info);

} // namespace weft::fabric
