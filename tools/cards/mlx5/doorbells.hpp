// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Decodes doorbells, which are writes to the pages of BAR 0 behind the initialization segment.
#pragma once

#include <cstdint>
#include <map>

namespace weft::mlx5
{

class Core;

class Doorbells
{
public:
	explicit Doorbells(Core &core) : core_(core) {}

	// Handles a write of the dword @value at @offset of UAR @page.
	void write(std::uint32_t page, std::uint32_t offset, std::uint32_t value);
	void reset() { halves_.clear(); }

private:
	void send(std::uint32_t page, std::uint32_t value);
	void arm_cq(std::uint32_t page, std::uint32_t first, std::uint32_t second);
	void event_queue(std::uint32_t page, std::uint32_t value, bool arm);

	Core &core_;
	// First dwords of doorbells whose second dword has not been written, by page.
	std::map<std::uint32_t, std::uint32_t> halves_;
};

} // namespace weft::mlx5
