// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the InfiniHost III as a model that weftd can create.
#include "cards/model.hpp"

#include "cards/mthca/card.hpp"
#include "cards/mthca/card_context.hpp"
#include "cards/mellanox_icm/held_card.hpp"

namespace weft::mthca
{

namespace
{

constexpr std::uint32_t kBreakdown = 0x03000bad; // an error of the bus

const cards::Registration kRegistration{
	{.name = "mthca",
	 .least_ports = 2,
	 .most_ports = 2,
	 .flags = {},
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<mellanox_icm::HeldCard<Card>>(
			 *loop, [](Card &card) { card.break_down(kBreakdown); },
			 CardConfig{settings.name, settings.guid, settings.ports, settings.trusted},
			 make_transport);
	 }}};

} // namespace

} // namespace weft::mthca
