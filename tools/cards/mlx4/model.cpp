// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the ConnectX-2 as a model that weftd can create.
#include "cards/model.hpp"

#include "cards/mlx4/card.hpp"
#include "cards/mlx4/card_context.hpp"
#include "cards/hca/transport.hpp"
#include "cards/mellanox_icm/held_card.hpp"

namespace weft::mlx4
{

namespace
{

constexpr std::string_view kSmallBars = "small_bars";
constexpr std::uint32_t kBreakdown = 0xbad;

const cards::Registration kRegistration{
	{.name = "mlx4",
	 .least_ports = 1,
	 .most_ports = 2,
	 .flags = {kSmallBars},
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<mellanox_icm::HeldCard<Card>>(
			 *loop, [](Card &card) { card.break_down(kBreakdown); },
			 CardConfig{settings.name,
				    settings.guid,
				    {},
				    settings.ports,
				    settings.flags.contains(kSmallBars),
				    settings.trusted},
			 make_transport);
	 }}};

} // namespace

} // namespace weft::mlx4
