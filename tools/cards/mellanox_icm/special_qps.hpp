// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Finds the special queue pairs of an mlx4 or mthca card. QP0 of each port and then QP1 of each
// port have consecutive numbers, starting with one that the driver chooses.
#pragma once

#include <cstdint>

#include "cards/hca/context.hpp"

namespace weft::mellanox_icm
{

class SpecialQps
{
public:
	explicit SpecialQps(hca::Context &context) : context_(context) {}

	// Sets the first number. 0 means that there are no special QPs.
	void set(std::uint32_t base)
	{
		base_ = base;
		for (std::uint32_t index = 0; index < hca::Context::kSpecialQps; ++index)
			context_.special_qpns[index] = base ? base + index : 0;
	}
	std::uint32_t base() const { return base_; }

	// Returns true if @qpn is one of the @count numbers from the base on.
	bool contain(std::uint32_t qpn, std::uint32_t count) const
	{
		return base_ && qpn - base_ < count;
	}
	// Returns 0 for SMI, 1 for GSI, and -1 for other numbers.
	std::int8_t kind(std::uint32_t qpn) const
	{
		return contain(qpn, hca::Context::kSpecialQps)
			       ? static_cast<std::int8_t>((qpn - base_) / 2)
			       : std::int8_t{-1};
	}
	// Returns the port of a special QP. @qpn must be the number of one.
	std::uint8_t port(std::uint32_t qpn) const
	{
		return static_cast<std::uint8_t>(1 + (qpn - base_) % 2);
	}

private:
	hca::Context &context_;
	std::uint32_t base_ = 0;
};

} // namespace weft::mellanox_icm
