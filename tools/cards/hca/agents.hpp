// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Answers management datagrams in place of firmware: SMPs and performance MADs that the driver
// passes by the command MAD_IFC, and SMPs that arrive from the fabric.
#pragma once

#include <cstdint>
#include <optional>

#include "cards/hca/management.hpp"
#include "cards/hca/subnet_agent.hpp"

namespace weft::hca
{

class Agents final : public ManagementAgent
{
public:
	// @trusted: the driver may change the node and manage the subnet. If it is false, the
	// driver can only read attributes, by MAD_IFC, and does not get the SMPs that arrive from
	// the fabric.
	Agents(const fabric::NodeIdentity &identity,
	       const std::vector<std::unique_ptr<CardPort>> &ports, Loop &loop,
	       SubnetAgent::Host &host, bool trusted);

	std::optional<ib::Smp> wire_smp(unsigned port, const ib::Smp &smp, std::uint16_t slid,
					bool &handled) override;
	void key_violation(unsigned port, ib::TrapNumber trap,
			   const packet::Headers &headers) override;

	// Executes MAD_IFC: replaces @mad, which is addressed to @port, by its response. A
	// TrapRepress has no response. Returns false if the M_Key is wrong, or if an untrusted
	// driver sends an SMP that is not a Get. @slid is the source LID that the driver passes if
	// the MAD came from the fabric.
	bool local_mad(unsigned port, ib::Mad &mad, ib::Lid slid, bool ignore_mkey);

	SubnetAgent &subnet() { return subnet_; }

private:
	const std::vector<std::unique_ptr<CardPort>> &ports_;
	SubnetAgent subnet_;
	const bool trusted_;
};

} // namespace weft::hca
