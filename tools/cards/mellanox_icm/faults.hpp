// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Injects faults into a card, for testing drivers: defines the kinds of faults, and how often they
// occur.
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
	cqe_number,     // a CQE with the number of a QP that does not exist
	cqe_index,      // a CQE for a request that was never posted
	cqe_opcode,     // a CQE with an opcode that does not exist
	cqe_owner,      // a CQE that is still marked as the card's, so the driver never sees it
	eqe_number,     // an EQE about an object that does not exist
	eqe_type,       // an EQE of a type that does not exist
	eqe_owner,      // an EQE that is still marked as the card's
	command_lost,   // a command that never completes
	command_twice,  // a command that completes with two events
	command_status, // a command with a status that does not exist
	capabilities,   // the card's capabilities contradict each other
	interrupt,      // an interrupt without a cause
	srq_list,       // the next request of a shared receive queue cannot be read
	command_nth,    // the n-th command from now fails like command_status
};
constexpr unsigned kFaultKinds = 14;

// The names of the faults for users, in the order of the enumeration: "cqe-number" and so on.
std::span<const std::string_view, kFaultKinds> fault_names();

/*
 * Decides which faults occur. They are armed on any thread, and checked on the card's loop at every
 * opportunity. Without an armed fault, a check costs one test of a flag.
 */
class Faults
{
public:
	// Status that a faulty card may return.
	static constexpr auto kNoSuchStatus = static_cast<hw::mellanox_icm::Status>(0xbd);

	// Makes the next @count opportunities fail. For command_nth, makes the @count-th command
	// from now fail, or none if @count is 0.
	void arm(Fault fault, std::uint32_t count);
	// From now on, one of @one_in opportunities fails, selected by @seed. 0 stops this.
	// command_nth is excluded, and so is `capabilities`, with which the driver could not start
	// again.
	void randomise(std::uint64_t seed, std::uint32_t one_in);

	bool any() const { return any_.load(std::memory_order_relaxed); }
	// Returns true if the fault occurs at this opportunity. Called on the loop.
	bool strikes(Fault fault) { return any() && draw(fault); }
	// Returns how often the fault has occurred.
	std::uint64_t struck(Fault fault) const
	{
		return kinds_[static_cast<unsigned>(fault)].struck.load(std::memory_order_relaxed);
	}
	// Returns the count with which arm() would restore the current state.
	std::uint32_t armed(Fault fault) const
	{
		return kinds_[static_cast<unsigned>(fault)].armed.load(std::memory_order_relaxed);
	}

	// Returns an EQE with the faults that are due. Sets @wrong_owner if the owner bit must also
	// be wrong. Called on the loop. Each card applies CQE faults itself, because the formats of
	// CQEs differ.
	hw::mellanox_icm::Eqe distorted(hw::mellanox_icm::Eqe entry, bool &wrong_owner);
	// Returns a number below @end, which is derived from the seed. Called on the loop.
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
	// Seed of the random numbers in use. Used only on the loop.
	std::optional<std::uint64_t> seed_in_use_;
	std::mt19937_64 random_;
};

// Applies one of @lies to the capabilities if that fault is due. Called on the loop.
template<std::size_t N>
void contradict(Faults &faults, void (*const (&lies)[N])(std::uint8_t *), std::uint8_t *out)
{
	if (faults.strikes(Fault::capabilities))
		lies[faults.below(N)](out);
}

} // namespace weft::mellanox_icm
