// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decodes doorbells, which are writes to the UAR pages of BAR 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "cards/mlx4/names.hpp"

namespace weft::mlx4
{

class Core;

class Doorbells
{
public:
	explicit Doorbells(Core &core) : core_(core) {}

	void reset() { halves_.clear(); }
	// Handles a write of any size at any offset of the BAR. Only complete aligned dwords have
	// an effect.
	void write(std::uint64_t offset, std::span<const std::byte> data);

private:
	void write_dword(std::uint32_t page, std::uint32_t offset, std::uint32_t value);
	void send(std::uint32_t page, std::uint32_t value);
	void arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second);
	void event_queue(std::uint32_t eqn, std::uint32_t value);

	Core &core_;
	// First dwords of CQ doorbells that are written in two parts, by page.
	std::unordered_map<std::uint32_t, std::uint32_t> halves_;
};

} // namespace weft::mlx4
