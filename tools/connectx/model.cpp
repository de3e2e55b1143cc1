// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// ConnectX-2 as one of the models that weftd can make.
#include "cards/model.hpp"

#include <algorithm>
#include <atomic>

#include "base/loop.hpp"
#include "connectx/card.hpp"
#include "connectx/card_context.hpp"
#include "hca/transport.hpp"
#include "mellanox/activity_report.hpp"

namespace weft::connectx
{

namespace
{

constexpr std::string_view kSmallBars = "small_bars";
constexpr std::string_view kCatastrophic = "catastrophic";
constexpr std::uint32_t kCatastrophicCode = 0xbad;
// Idle interrupts of one request.
constexpr std::uint32_t kMostInterrupts = 1000;

class HeldCard final : public cards::Card
{
public:
	HeldCard(const cards::Settings &settings, Loop &loop)
	    : loop_(loop), card_({settings.name,
				  settings.guid,
				  {},
				  settings.ports,
				  settings.flags.contains(kSmallBars),
				  settings.trusted},
				 make_transport)
	{
	}

	// What was posted has run.
	~HeldCard() override
	{
		loop_.run([] {});
	}

	PciDevice *function() override { return &card_; }

	std::vector<cards::Count> activity() const override { return mellanox::report(card_.activity()); }

	std::vector<cards::Count> faults() const override
	{
		std::vector<cards::Count> counts;
		const auto names = fault_names();
		for (unsigned kind = 0; kind < names.size(); ++kind)
			counts.push_back({names[kind],
					  faults_.struck(static_cast<Fault>(kind))});
		counts.push_back({kCatastrophic, breakdowns_.load(std::memory_order_relaxed)});
		return counts;
	}

	bool arm_fault(std::string_view name, std::uint32_t count) override
	{
		if (name == kCatastrophic) {
			breakdowns_.fetch_add(1, std::memory_order_relaxed);
			loop_.post([this] { card_.break_down(kCatastrophicCode); });
			return true;
		}
		const auto names = fault_names();
		const auto found = std::ranges::find(names, name);
		if (found == names.end())
			return false;
		const auto fault = static_cast<Fault>(found - names.begin());
		if (fault != Fault::interrupt) {
			faults_.arm(fault, count);
			return true;
		}
		// It has no opportunity to wait for.
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
	Loop &loop_;
	connectx::Card card_;
	Faults &faults_{card_.faults()};
	std::atomic<std::uint64_t> breakdowns_{0};
};

const cards::Registration registration{
	{.name = "connectx",
	 .least_ports = 1,
	 .most_ports = 2,
	 .flags = {kSmallBars},
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<HeldCard>(settings, *loop);
	 }}};

} // namespace

} // namespace weft::connectx
