// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Runs the conformance tests for subnet management agents (agent_rules.hpp) on a card.
#include "net/fabric/tests/agent_rules.hpp"

#include "cards/mlx4/tests/tiny_driver.hpp"
#include "net/fabric/tests/test_node.hpp"

namespace weft::fabric::testing
{
namespace
{

using mlx4::testing::Opcode;
using mlx4::testing::Status;

// The first port of a two-port card. The driver sends the SMPs, and needs the M_Key like any other
// sender.
struct CardNode {
	static constexpr PortKind kKind = PortKind::channel_adapter;
	static constexpr unsigned kNumber = 1;
	static constexpr bool kReachedOtherwise = true;

	CardNode()
	{
		driver.bring_up_events();
		driver.command(Opcode::init_port, 1);
		settle();
	}
	std::optional<ib::Smp> ask(ib::Smp request)
	{
		/*
		 * Uses a LID-routed SMP, because MAD_IFC does not process a directed route, even
		 * without hops.
		 */
		request.header.mgmt_class =
			static_cast<std::uint8_t>(ib::MgmtClass::subn_lid_routed);
		const auto *const bytes = reinterpret_cast<const std::uint8_t *>(&request);
		const auto result = driver.command(Opcode::mad_ifc, kNumber, 0,
						   {bytes, sizeof(request)}, sizeof(request));
		ib::Smp answer;
		if (result.status != Status::ok)
			return std::nullopt;
		std::memcpy(&answer, result.out.data(), sizeof(answer));
		if (!answer.header.is_response())
			return std::nullopt;
		return answer;
	}
	ib::PortInfo key_port() { return driver.context().port(1)->info(); }
	void settle() { driver.host.loop().poll(); }

	mlx4::testing::TinyDriver driver{2};
	PacketNode peer{*driver.peers[0]};
};

INSTANTIATE_TYPED_TEST_SUITE_P(Card, AgentRules, CardNode);

} // namespace
} // namespace weft::fabric::testing
