// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Computes with packet sequence numbers, which have 24 bits and are compared modulo 2^24 (IBA 9.7.2
 * and 9.7.3.1).
 */
#pragma once

#include <cstdint>

namespace weft::hca::transport
{

class Psn
{
public:
	static constexpr std::uint32_t kMask = 0xffffff;
	/*
	 * Maximum number of unacknowledged PSNs. With more, old and new PSNs could not be
	 * distinguished.
	 */
	static constexpr std::uint32_t kWindow = 1u << 23;

	constexpr Psn() = default;
	explicit constexpr Psn(std::uint32_t value) : value_(value & kMask) {}

	constexpr std::uint32_t value() const { return value_; }
	constexpr Psn operator+(std::uint32_t n) const { return Psn(value_ + n); }
	constexpr Psn operator-(std::uint32_t n) const { return Psn(value_ - n); }
	constexpr Psn &operator+=(std::uint32_t n) { return *this = *this + n; }
	constexpr Psn &operator++() { return *this += 1; }
	constexpr bool operator==(const Psn &) const = default;

	/* Returns how far this PSN is ahead of the other, in [-2^23, 2^23). */
	constexpr std::int32_t distance_from(Psn other) const
	{
		return static_cast<std::int32_t>((value_ - other.value_) << 8) >> 8;
	}
	constexpr bool before(Psn other) const { return distance_from(other) < 0; }

private:
	std::uint32_t value_ = 0;
};

} // namespace weft::hca::transport
