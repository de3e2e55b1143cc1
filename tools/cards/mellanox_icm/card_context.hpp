// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements the control plane of mlx4 and mthca cards for the transport engine (hca::Context).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cards/hca/context.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/mellanox_icm/multicast_table.hpp"
#include "cards/mellanox_icm/special_qps.hpp"

namespace weft::mellanox_icm
{

// FamilyContext - base of each card's CardContext, which adds the tables of its queues.
struct FamilyContext : hca::Context {
	// Parts that the card creates first. They outlive the context.
	struct Parts {
		std::string name;
		Loop &loop;
		MemoryTable &memory;
		EventQueues &events;
		MulticastTable &multicast;
		hca::ManagementAgent &management;
		hca::Diagnostics &diagnostics;
		std::vector<std::unique_ptr<hca::CardPort>> &ports;
		bool trusted = true; // CardConfig
	};

	// @source, @sink and @agent may be members of the derived class.
	FamilyContext(const Parts &parts, hca::WorkSource &source, hca::CompletionSink &sink,
		      hca::ManagementAgent &agent)
	    : hca::Context{parts.name, parts.loop,        source,
			   sink,       parts.memory,      parts.multicast,
			   agent,      parts.diagnostics, parts.ports},
	      memory(parts.memory), events(parts.events), multicast(parts.multicast)
	{
	}

	MemoryTable &memory;
	EventQueues &events;
	MulticastTable &multicast;
	SpecialQps special_qps{*this};
};

} // namespace weft::mellanox_icm
