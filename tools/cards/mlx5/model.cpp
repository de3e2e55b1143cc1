// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the ConnectX-5 as a model that weftd can create.
#include "cards/model.hpp"

#include <atomic>
#include <utility>

#include "cards/mellanox_icm/held_card.hpp"
#include "cards/mlx5/card.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

namespace
{

// A card in the form that the daemon uses, with counters and a fault that other cards do not have.
class HeldCard final : public mellanox_icm::HeldCard<mlx5::Card>
{
	using Base = mellanox_icm::HeldCard<mlx5::Card>;

public:
	HeldCard(Loop &loop, CardConfig config)
	    : Base(loop, [](mlx5::Card &card) { card.break_down(); }, std::move(config))
	{
	}

	std::vector<cards::Count> activity() const override
	{
		std::vector<cards::Count> counts = Base::activity();
		counts.push_back({"unsupported", card().unsupported().count()});
		counts.push_back({"polls", card().polls().polls});
		counts.push_back({"polled_doorbells", card().polls().doorbells});
		return counts;
	}
	std::vector<cards::Count> faults() const override
	{
		std::vector<cards::Count> counts = Base::faults();
		counts.push_back({kHealthStuck, freezes_.load(std::memory_order_relaxed)});
		return counts;
	}
	bool arm_fault(std::string_view name, std::uint32_t count) override
	{
		if (name != kHealthStuck)
			return Base::arm_fault(name, count);
		fail([](mlx5::Card &card) { card.freeze(); }, count, freezes_);
		return true;
	}

private:
	static constexpr std::string_view kHealthStuck = "health-stuck";

	std::atomic<std::uint64_t> freezes_{0};
};

constexpr std::string_view kEnhancedIpoib = "enhanced_ipoib";

const cards::Registration kRegistration{
	{.name = "mlx5",
	 .most_ports = limits::kMostPorts,
	 .flags = {kEnhancedIpoib},
	 .polls_doorbells = true,
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<HeldCard>(
			 *loop,
			 CardConfig{settings.name, settings.guid, settings.ports, settings.trusted,
				    settings.flags.contains(kEnhancedIpoib),
				    settings.polled_doorbells});
	 }}};

} // namespace

} // namespace weft::mlx5
