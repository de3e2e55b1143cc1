// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mellanox_icm/faults.hpp"

namespace weft::mellanox_icm
{

using hw::mellanox_icm::Eqe;

namespace
{

constexpr std::array<std::string_view, kFaultKinds> kNames = {
	"cqe-number",   "cqe-index", "cqe-opcode",   "cqe-owner",     "eqe-number",
	"eqe-type",     "eqe-owner", "command-lost", "command-twice", "command-status",
	"capabilities", "interrupt", "srq-list",     "command-nth",
};
constexpr std::uint32_t kNoSuchEvent = 0xee;
constexpr std::uint32_t kNumberMask = 0xffffff;

} // namespace

std::span<const std::string_view, kFaultKinds> fault_names()
{
	return kNames;
}

void Faults::arm(Fault fault, std::uint32_t count)
{
	auto &armed = kinds_[static_cast<unsigned>(fault)].armed;
	if (fault == Fault::command_nth)
		armed.store(count);
	else
		armed.fetch_add(count);
	any_.store(true);
}

void Faults::randomise(std::uint64_t seed, std::uint32_t one_in)
{
	seed_.store(seed);
	one_in_.store(one_in);
	any_.store(true);
}

std::uint32_t Faults::below(std::uint32_t end)
{
	const std::uint64_t seed = seed_.load(std::memory_order_relaxed);
	if (seed_in_use_ != seed) {
		seed_in_use_ = seed;
		random_.seed(seed);
	}
	return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_);
}

bool Faults::draw(Fault fault)
{
	Kind &kind = kinds_[static_cast<unsigned>(fault)];
	const std::uint32_t one_in = one_in_.load(std::memory_order_relaxed);
	bool strikes = false;
	std::uint32_t armed = kind.armed.load(std::memory_order_relaxed);
	// Another thread may change the count concurrently, even to zero.
	while (armed && !kind.armed.compare_exchange_weak(armed, armed - 1))
		;
	if (armed) {
		strikes = fault != Fault::command_nth || armed == 1;
	} else if (one_in && fault != Fault::capabilities && fault != Fault::command_nth) {
		strikes = below(one_in) == 0;
	}
	if (strikes)
		kind.struck.fetch_add(1, std::memory_order_relaxed);
	return strikes;
}

Eqe Faults::distorted(Eqe entry, bool &wrong_owner)
{
	if (strikes(Fault::eqe_number))
		Eqe::number.set(entry.bytes,
				Eqe::number.get(entry.bytes) ^ (1 + below(kNumberMask)));
	if (strikes(Fault::eqe_type))
		Eqe::type.set(entry.bytes, kNoSuchEvent);
	wrong_owner = strikes(Fault::eqe_owner);
	return entry;
}

} // namespace weft::mellanox_icm
