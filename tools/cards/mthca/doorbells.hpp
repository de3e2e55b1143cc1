// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Doorbells: writes to the UAR pages of BAR 2, and the registers of event queues in BAR 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

namespace weft::mthca
{

class Core;

class Doorbells
{
public:
	explicit Doorbells(Core &core) : core_(core) {}

	void reset() { halves_.clear(); }
	// A write of any size to any place of BAR 2. Only whole aligned dwords count; a doorbell is
	// two.
	void write(std::uint64_t offset, std::span<const std::byte> data);
	// BAR 0. @offset: from the first event queue's register.
	void set_eq_consumer_index(std::uint64_t offset, std::uint32_t index);
	// The event queues from @first on whose bits are set in @mask.
	void arm_eqs(std::uint32_t first, std::uint32_t mask);

private:
	void write_dword(std::uint32_t page, std::uint32_t offset, std::uint32_t value);
	void send(std::uint32_t page, std::uint32_t first, std::uint32_t second);
	void arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second);

	Core &core_;
	// First halves of doorbells whose second has not come, by page and place: two for each page
	// at the most.
	std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> halves_;
};

} // namespace weft::mthca
