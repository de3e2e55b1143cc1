// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decodes doorbells, which are writes to the UAR pages of BAR 2, and writes to the registers of
// event queues in BAR 0.
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
	// Handles a write of any size at any offset of BAR 2. Only complete aligned dwords have an
	// effect. A doorbell consists of two dwords.
	void write(std::uint64_t offset, std::span<const std::byte> data);
	// Handles a write to BAR 0. @offset is relative to the register of the first event queue.
	void set_eq_consumer_index(std::uint64_t offset, std::uint32_t index);
	// Arms the event queues from @first on whose bits are set in @mask.
	void arm_eqs(std::uint32_t first, std::uint32_t mask);

private:
	void write_dword(std::uint32_t page, std::uint32_t offset, std::uint32_t value);
	void send(std::uint32_t page, std::uint32_t first, std::uint32_t second);
	void arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second);

	Core &core_;
	// First dwords of doorbells whose second dword has not been written, by page and offset.
	// There are at most two per page.
	std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> halves_;
};

} // namespace weft::mthca
