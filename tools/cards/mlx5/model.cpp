// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Registers the ConnectX-5 as a model that weftd can create.
#include "cards/model.hpp"

#include <algorithm>
#include <atomic>

#include "base/loop.hpp"
#include "cards/hca/activity_report.hpp"
#include "cards/mellanox_icm/fault_counts.hpp"
#include "cards/mlx5/card.hpp"
#include "cards/mlx5/limits.hpp"

namespace weft::mlx5
{

namespace
{

// A card in the form that the daemon uses.
class HeldCard final : public cards::Card
{
public:
	HeldCard(Loop &loop, CardConfig config) : loop_(loop), card_(std::move(config)) {}
	// Waits for the tasks that were posted.
	~HeldCard() override
	{
		loop_.run([] {});
	}

	PciDevice *function() override { return &card_; }

	std::vector<cards::Count> activity() const override
	{
		std::vector<cards::Count> counts = hca::report(card_.activity());
		counts.push_back({"unsupported", card_.unsupported().count()});
		return counts;
	}
	std::vector<cards::Count> faults() const override
	{
		std::vector<cards::Count> counts = mellanox_icm::struck_counts(faults_);
		counts.push_back({kCatastrophic, breakdowns_.load(std::memory_order_relaxed)});
		counts.push_back({kHealthStuck, freezes_.load(std::memory_order_relaxed)});
		return counts;
	}
	std::vector<cards::Count> armed() const override
	{
		return mellanox_icm::armed_counts(faults_);
	}
	bool arm_fault(std::string_view name, std::uint32_t count) override
	{
		if (name == kCatastrophic || name == kHealthStuck)
			return arm_failure(name, count);
		const auto names = mellanox_icm::fault_names();
		const auto found = std::ranges::find(names, name);
		if (found == names.end())
			return false;
		const auto fault = static_cast<Fault>(found - names.begin());
		if (fault != Fault::interrupt) {
			faults_.arm(fault, count);
			return true;
		}
		// Spurious interrupts need no opportunity, so they are raised at once.
		for (std::uint32_t i = 0; i < std::min(count, kMostInterrupts); ++i)
			loop_.post([this] { card_.interrupt_idly(); });
		return true;
	}
	bool randomise_faults(std::uint64_t seed, std::uint32_t one_in) override
	{
		faults_.randomise(seed, one_in);
		return true;
	}

private:
	// Simulates a failure of the whole card.
	bool arm_failure(std::string_view name, std::uint32_t count)
	{
		if (count == 0)
			return true;
		if (name == kCatastrophic) {
			breakdowns_.fetch_add(1, std::memory_order_relaxed);
			loop_.post([this] { card_.break_down(); });
		} else {
			freezes_.fetch_add(1, std::memory_order_relaxed);
			loop_.post([this] { card_.freeze(); });
		}
		return true;
	}

	// Limit of spurious interrupts per request.
	static constexpr std::uint32_t kMostInterrupts = 1000;
	static constexpr std::string_view kCatastrophic = "catastrophic";
	static constexpr std::string_view kHealthStuck = "health-stuck";

	Loop &loop_;
	mlx5::Card card_;
	Faults &faults_{card_.faults()};
	std::atomic<std::uint64_t> breakdowns_{0};
	std::atomic<std::uint64_t> freezes_{0};
};

constexpr std::string_view kEnhancedIpoib = "enhanced_ipoib";

const cards::Registration kRegistration{
	{.name = "mlx5",
	 .most_ports = limits::kMostPorts,
	 .flags = {kEnhancedIpoib},
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<HeldCard>(
			 *loop,
			 CardConfig{settings.name, settings.guid, settings.ports, settings.trusted,
				    settings.flags.contains(kEnhancedIpoib)});
	 }}};

} // namespace

} // namespace weft::mlx5
