// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The card's subnet management agent (IBA 14.2): it answers Get and Set of the attributes of the
// card's node and ports, for the driver (MAD_IFC) and for the wire.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ib/smp.hpp>

#include "connectx/event_queue.hpp"
#include "connectx/port.hpp"
#include "connectx/trap_sender.hpp"
#include "fabric/mkey_guard.hpp"
#include "core/packet/headers.hpp"

namespace weft::connectx
{

// NodeIdentity - what NodeInfo and NodeDescription say of the card.
struct NodeIdentity {
	ib::Guid node_guid = 0;
	ib::Guid system_image_guid = 0;
	std::string description;
};

class SubnetAgent
{
public:
	// Host - what the agent asks of the card.
	class Host
	{
	public:
		virtual ~Host() = default;
		// Addresses, tables or state of @port are no longer what they were.
		virtual void port_changed(unsigned port) = 0;
		// To be done once the answer is under way, as that may have to cross the link.
		enum class LinkRequest { train, disable };
		virtual void request_link(unsigned port, LinkRequest request) = 0;
		// Puts a LID-routed SMP on its way to the manager of @port.
		virtual void send_to_manager(unsigned port, const ib::Smp &smp) = 0;
	};

	SubnetAgent(const NodeIdentity &identity,
		    const std::vector<std::unique_ptr<CardPort>> &ports, EventQueues &events,
		    Loop &loop, Host &host);

	enum class Verdict {
		answered,  // @smp is now the answer, without direction bit
		denied,    // wrong M_Key: no answer (IBA 14.2.4)
		repressed, // it ended one of the port's traps: no answer
		foreign,   // nothing for the agent
	};
	// An SMP addressed to @port, of either class, from @slid.
	Verdict handle(unsigned port, ib::Smp &smp, ib::Lid slid, bool ignore_mkey);

	// Moves @port to @state, and tells who must know.
	void set_state(CardPort &port, ib::PortState state);

	// What the manager is told by traps: the driver changed the capabilities of @port, or the
	// node's description; a packet came in on @port with a wrong P_Key or Q_Key.
	void capabilities_changed(const CardPort &port);
	void description_changed();
	void key_violation(const CardPort &port, ib::TrapNumber trap,
			   const packet::Headers &headers);
	// The traps of @port that wait for an answer are nobody's business any more.
	void forget_traps(const CardPort &port) { agent_of(port).traps.clear(); }

private:
	// What the agent keeps of each port.
	struct PortAgent {
		PortAgent(Loop &loop, const CardPort &port, Host &host);
		fabric::MkeyGuard guard;
		TrapSender traps;
	};
	PortAgent &agent_of(const CardPort &port) { return *port_agents_[port.number() - 1]; }
	void trap_capabilities(const CardPort &port, std::uint16_t change_flags);
	void trap_mkey(const CardPort &port, const ib::Smp &smp, ib::Lid slid);

	std::uint16_t get(CardPort &port, ib::Smp &smp);
	std::uint16_t set(CardPort &port, ib::Smp &smp);
	std::uint16_t set_port_info(CardPort &port, const ib::PortInfo &wanted);
	void retrain(CardPort &port);
	std::uint16_t set_pkeys(CardPort &port, std::uint32_t block, const ib::PkeyTable &table);
	std::uint16_t set_guids(CardPort &port, std::uint32_t block, const ib::GuidInfo &info);
	// The port that a modifier names; 0 is the one addressed.
	CardPort *select(CardPort &addressed, std::uint32_t number) const;

	const NodeIdentity &identity_;
	const std::vector<std::unique_ptr<CardPort>> &ports_;
	EventQueues &events_;
	Host &host_;
	std::vector<std::unique_ptr<PortAgent>> port_agents_;
};

} // namespace weft::connectx
