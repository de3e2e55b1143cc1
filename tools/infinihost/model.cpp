// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// InfiniHost III as one of the models that weftd can make.
#include "cards/model.hpp"

#include <atomic>
#include <stdexcept>

#include "base/loop.hpp"
#include "infinihost/card.hpp"
#include "infinihost/card_context.hpp"
#include "mellanox/activity_report.hpp"

namespace weft::infinihost
{

namespace
{

constexpr std::string_view kCatastrophic = "catastrophic";
constexpr std::uint32_t kCatastrophicCode = 0x03000bad; // an error of the bus

class HeldCard final : public cards::Card
{
public:
	HeldCard(const cards::Settings &settings, Loop &loop)
	    : loop_(loop), card_({settings.name, settings.guid, settings.ports}, make_transport)
	{
		// Its driver answers the subnet manager itself: to keep it from managing would keep it from having a LID.
		if (!settings.trusted)
			throw std::invalid_argument(settings.name + ": an infinihost cannot be untrusted");
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
		return {{kCatastrophic, breakdowns_.load(std::memory_order_relaxed)}};
	}

	bool arm_fault(std::string_view name, std::uint32_t) override
	{
		if (name != kCatastrophic)
			return false;
		breakdowns_.fetch_add(1, std::memory_order_relaxed);
		loop_.post([this] { card_.break_down(kCatastrophicCode); });
		return true;
	}

private:
	Loop &loop_;
	infinihost::Card card_;
	std::atomic<std::uint64_t> breakdowns_{0};
};

const cards::Registration registration{
	{.name = "infinihost",
	 .least_ports = 2,
	 .most_ports = 2,
	 .flags = {},
	 .make = [](const cards::Settings &settings, Loop *loop) -> std::unique_ptr<cards::Card> {
		 return std::make_unique<HeldCard>(settings, *loop);
	 }}};

} // namespace

} // namespace weft::infinihost
