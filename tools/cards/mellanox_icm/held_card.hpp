// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements weftd's interface to a card (cards/card.hpp) for mthca, mlx4 and mlx5.
#pragma once

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/loop.hpp"
#include "cards/card.hpp"
#include "cards/hca/activity_report.hpp"
#include "cards/mellanox_icm/fault_counts.hpp"
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mellanox_icm
{

// @Model is a PciDevice with counters and faults, which can simulate spurious interrupts.
template<class Model>
class HeldCard : public cards::Card
{
public:
	// @break_down simulates a failure of the whole card. It is called on the loop.
	template<class... Arguments>
	HeldCard(Loop &loop, void (*break_down)(Model &card), Arguments &&...arguments)
	    : loop_(loop), break_down_(break_down), card_(std::forward<Arguments>(arguments)...)
	{
	}

	// Waits until all posted tasks have run.
	~HeldCard() override
	{
		loop_.run([] {});
	}

	PciDevice *function() override { return &card_; }

	std::vector<fabric::LocalAccess *> local_access() override { return card_.local_access(); }

	std::vector<cards::Count> activity() const override { return report(card_.activity()); }

	std::vector<cards::Count> faults() const override
	{
		std::vector<cards::Count> counts = struck_counts(faults_);
		counts.push_back({kCatastrophic, breakdowns_.load(std::memory_order_relaxed)});
		return counts;
	}

	std::vector<cards::Count> armed() const override { return armed_counts(faults_); }

	bool arm_fault(std::string_view name, std::uint32_t count) override
	{
		if (name == kCatastrophic) {
			fail(break_down_, count, breakdowns_);
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

protected:
	// Makes the whole card fail once, unless @count is 0, and counts that in @failures.
	void fail(void (*failure)(Model &card), std::uint32_t count,
		  std::atomic<std::uint64_t> &failures)
	{
		if (count == 0)
			return;
		failures.fetch_add(1, std::memory_order_relaxed);
		loop_.post([this, failure] { failure(card_); });
	}
	const Model &card() const { return card_; }

private:
	static constexpr std::string_view kCatastrophic = "catastrophic";
	// Limit of spurious interrupts per request.
	static constexpr std::uint32_t kMostInterrupts = 1000;

	Loop &loop_;
	void (*const break_down_)(Model &card);
	Model card_;
	Faults &faults_{card_.faults()};
	std::atomic<std::uint64_t> breakdowns_{0};
};

} // namespace weft::mellanox_icm
