// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Determines which MADs of a port are delivered to an agent: responses to the agent's requests,
// which are recognised by the upper half of their transaction IDs, and requests for which the agent
// has registered.
#pragma once

#include <array>
#include <cstdint>

#include "attach/protocol.hpp"
#include "net/fabric/mad_packet.hpp"

namespace weft::attach
{

struct Claim {
	// Unique among the claims of a port, and not 0.
	std::uint32_t hi_tid = 0;
	std::uint8_t qpn = 1;
	// If 0, the agent gets no unsolicited MADs.
	std::uint8_t mgmt_class = 0;
	std::uint8_t mgmt_class_version = 0;
	std::uint32_t oui = 0; // for classes of the second vendor range
	std::array<std::uint64_t, 2> methods{};

	// Checks a request. Returns 0, or EINVAL as umad does.
	static int check(const AgentRequest &request);
	static Claim of(const AgentRequest &request);

	// Returns true if both claims would match the same unsolicited MAD.
	bool overlaps(const Claim &other) const;
	// Returns true if the claim matches an unsolicited MAD. @either_smp: SMPs of the other SMP
	// class match, too.
	bool wants(const ib::Mad &mad, std::uint32_t qpn, bool either_smp) const;

private:
	bool has_method(std::uint8_t method) const
	{
		return method < 128 && (methods[method / 64] >> method % 64 & 1) != 0;
	}
};

} // namespace weft::attach
