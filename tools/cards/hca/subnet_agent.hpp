// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the card's subnet management agent. It answers SMPs from the fabric and from the
// driver (command MAD_IFC), reports changes to the driver by events, and sends traps to the subnet
// manager. The code that the agents of all types of nodes share is in fabric::SubnetAgent.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ib/smp.hpp>

#include "cards/hca/port.hpp"
#include "cards/hca/trap_sender.hpp"
#include "core/wire/headers.hpp"
#include "net/fabric/subnet_agent.hpp"

namespace weft::hca
{

// Bits for changes of a PortInfo.
namespace port_info_changed
{
constexpr std::uint32_t kSmLid = 1u << 0;
constexpr std::uint32_t kGidPrefix = 1u << 1;
constexpr std::uint32_t kLid = 1u << 2;
constexpr std::uint32_t kClientReregister = 1u << 3;
constexpr std::uint32_t kSmSl = 1u << 4;
} // namespace port_info_changed

class SubnetAgent final : private fabric::SubnetAgentHost
{
public:
	// Host - the card's functions that the agent calls.
	class Host
	{
	public:
		virtual ~Host() = default;
		// Called when addresses, tables or the state of @port have changed.
		virtual void port_changed(unsigned port) = 0;
		// Changes that a card may report to its driver: the port became active or inactive;
		// the PortInfo fields of @changed (port_info_changed); entries of @block of a
		// table, with a bit for each changed entry.
		virtual void port_state_changed(unsigned port, bool active) = 0;
		virtual void port_info_changed(unsigned port, std::uint32_t changed) = 0;
		virtual void pkeys_changed(unsigned port, unsigned block,
					   std::uint32_t entries) = 0;
		virtual void guids_changed(unsigned port, unsigned block,
					   std::uint32_t entries) = 0;
		// Executes a change of the link. Called after the response was sent, because the
		// response may have to cross the link.
		virtual void order_link(unsigned port, fabric::LinkOrder order) = 0;
		// Sends a LID-routed SMP to the subnet manager of @port.
		virtual void send_to_manager(unsigned port, const ib::Smp &smp) = 0;
	};

	SubnetAgent(const fabric::NodeIdentity &identity,
		    const std::vector<std::unique_ptr<CardPort>> &ports, Loop &loop, Host &host);

	enum class Verdict {
		answered,  // @smp was replaced by the response, without direction bit
		denied,    // wrong M_Key: no response (IBA 14.2.4)
		repressed, // a TrapRepress for one of the port's traps: no response
		foreign,   // not for the agent
	};
	// Handles an SMP of either class, addressed to @port and sent from @slid.
	Verdict handle(unsigned port, ib::Smp &smp, ib::Lid slid, bool ignore_mkey);

	fabric::PortView view(unsigned port) const { return agent_.view(port); }

	// Must be called when the link of @port, which is open, has gone up or down, or both.
	void link_changed(CardPort &port, bool was_down);
	// Must be called when the driver has closed @port. Drops pending traps of the port.
	void port_closed(CardPort &port);

	// These report changes to the subnet manager by traps: the driver has changed the
	// capabilities of @port or the node description, or a packet with a wrong P_Key or Q_Key
	// has arrived.
	void capabilities_changed(const CardPort &port);
	void description_changed();
	void key_violation(const CardPort &port, ib::TrapNumber trap,
			   const packet::Headers &headers);

private:
	TrapSender &traps_of(const CardPort &port) { return *traps_[port.number() - 1]; }
	void trap_capabilities(const CardPort &port, std::uint16_t change_flags);
	void trap_mkey(const CardPort &port, const ib::Smp &smp, ib::Lid slid);

	// fabric::SubnetAgentHost
	Clock::time_point now() const override { return loop_.now(); }
	void port_info_set(const fabric::ManagedPort &port, const ib::PortInfo &before,
			   bool reregister) override;
	void pkeys_set(const fabric::ManagedPort &port, unsigned block,
		       std::uint32_t changed) override;
	void guids_set(const fabric::ManagedPort &port, std::uint32_t changed) override;
	void sl_to_vl_set(const fabric::ManagedPort &port) override;
	void report_state(unsigned port, const ib::PortInfo &before, const ib::PortInfo &now);

	const std::vector<std::unique_ptr<CardPort>> &ports_;
	const Loop &loop_;
	Host &host_;
	std::vector<std::unique_ptr<TrapSender>> traps_;
	fabric::SubnetAgent agent_;
};

} // namespace weft::hca
