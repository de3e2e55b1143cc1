// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Fault injection in a card, for testing drivers: the kinds of faults, and how often they occur.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string_view>

#include <hw/mellanox_icm/commands.hpp>
#include <hw/mellanox_icm/eqe.hpp>

namespace weft::mellanox_icm
{

enum class Fault : unsigned {
	cqe_number,     // a completion of a queue pair that does not exist
	cqe_index,      // of a work request that was never posted
	cqe_opcode,     // of a kind that does not exist
	cqe_owner,      // still marked as the card's: the driver never sees it
	eqe_number,     // an event about an object that does not exist
	eqe_type,       // of a kind that does not exist
	eqe_owner,      // still marked as the card's
	command_lost,   // a command that never completes
	command_twice,  // one that completes by two events
	command_status, // one that ends with a status which does not exist
	capabilities,   // the card's capabilities contradict each other
	interrupt,      // one without a cause
	srq_list,       // the next request of a shared receive queue cannot be read
	command_nth,    // of as many commands as are armed, the last one ends as by command_status
};
constexpr unsigned kFaultKinds = 14;

// The names by which people choose faults, in their order: "cqe-number" and so on.
std::span<const std::string_view, kFaultKinds> fault_names();

/*
 * Decides what goes wrong next. Armed from any thread; checked on the card's loop at every
 * opportunity, which costs a card without faults one test of a flag.
 */
class Faults
{
public:
	// Status that a faulty card may return.
	static constexpr auto kNoSuchStatus = static_cast<hw::mellanox_icm::Status>(0xbd);

	// The next @count opportunities of this kind go wrong; of command_nth, the @count-th from
	// here, and none for 0.
	void arm(Fault fault, std::uint32_t count);
	// From now on one opportunity in @one_in fails, chosen by @seed; capabilities are
	// left alone, so that a driver can come up again, and what is counted. 0 ends it.
	void randomise(std::uint64_t seed, std::uint32_t one_in);

	bool any() const { return any_.load(std::memory_order_relaxed); }
	// Decides if this opportunity goes wrong. Called on the loop.
	bool strikes(Fault fault) { return any() && draw(fault); }
	// How often it has.
	std::uint64_t struck(Fault fault) const
	{
		return kinds_[static_cast<unsigned>(fault)].struck.load(std::memory_order_relaxed);
	}

	// An entry as it comes out of such a card; its owner bit is wrong, too, if @wrong_owner. On
	// the loop. Completions are each card's own: whoever posts them asks for their faults.
	hw::mellanox_icm::Eqe distorted(hw::mellanox_icm::Eqe entry, bool &wrong_owner);
	// A number below @end, of those that follow from the seed. On the loop.
	std::uint32_t below(std::uint32_t end);

private:
	struct Kind {
		std::atomic<std::uint32_t> armed{0};
		std::atomic<std::uint64_t> struck{0};
	};
	bool draw(Fault fault);

	std::array<Kind, kFaultKinds> kinds_;
	std::atomic<bool> any_{false};
	std::atomic<std::uint32_t> one_in_{0};
	std::atomic<std::uint64_t> seed_{0};
	// The loop only; begins anew with every seed.
	std::optional<std::uint64_t> drawn_from_;
	std::mt19937_64 random_;
};

// One of these lies, if it is time for one. On the loop.
template<std::size_t N>
void contradict(Faults &faults, void (*const (&lies)[N])(std::uint8_t *), std::uint8_t *out)
{
	if (faults.strikes(Fault::capabilities))
		lies[faults.below(N)](out);
}

} // namespace weft::mellanox_icm
