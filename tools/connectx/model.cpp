// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// ConnectX-2 as one of the models that weftd can make.
#include "cards/model.hpp"

#include "connectx/card.hpp"
#include "connectx/card_context.hpp"
#include "hca/transport.hpp"
#include "mellanox/held_card.hpp"

namespace weft::connectx
{

namespace
{

constexpr std::string_view kSmallBars = "small_bars";
constexpr std::uint32_t kBreakdown = 0xbad;

const cards::Registration registration{
	{.name = "connectx",
	 .least_ports = 1,
	 .most_ports = 2,
	 .flags = {kSmallBars},
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<mellanox::HeldCard<Card>>(
			 *loop, kBreakdown,
			 CardConfig{settings.name,
				    settings.guid,
				    {},
				    settings.ports,
				    settings.flags.contains(kSmallBars),
				    settings.trusted},
			 make_transport);
	 }}};

} // namespace

} // namespace weft::connectx
