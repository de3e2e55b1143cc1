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
	};

	SubnetAgent(const NodeIdentity &identity,
		    const std::vector<std::unique_ptr<CardPort>> &ports, EventQueues &events,
		    Host &host);

	enum class Verdict {
		answered, // @smp is now the answer, without direction bit
		denied,   // wrong M_Key: no answer (IBA 14.2.4)
		foreign,  // not a Get or Set of one of the agent's attributes
	};
	// An SMP addressed to @port, of either class.
	Verdict handle(unsigned port, ib::Smp &smp, bool ignore_mkey);

	// Moves @port to @state, and tells who must know.
	void set_state(CardPort &port, ib::PortState state);

private:
	std::uint16_t get(CardPort &port, ib::Smp &smp);
	std::uint16_t set(CardPort &port, ib::Smp &smp);
	std::uint16_t set_port_info(CardPort &port, const ib::PortInfo &wanted);
	void retrain(CardPort &port);
	std::uint16_t set_pkeys(CardPort &port, std::uint32_t block, const ib::PkeyTable &table);
	std::uint16_t set_guids(CardPort &port, std::uint32_t block, const ib::GuidInfo &info);
	bool mkey_allows(CardPort &port, const ib::Smp &smp, bool set) const;
	// The port that a modifier names; 0 is the one addressed.
	CardPort *select(CardPort &addressed, std::uint32_t number) const;

	const NodeIdentity &identity_;
	const std::vector<std::unique_ptr<CardPort>> &ports_;
	EventQueues &events_;
	Host &host_;
};

} // namespace weft::connectx
