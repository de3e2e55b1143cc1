// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * Defines big-endian integers, of which the structures of packets, MADs and descriptors consist.
 *
 * The wrappers have alignment 1: MAD attributes hold 64-bit GUIDs at offsets that are only
 * multiples of four, and a packet may start anywhere in a buffer. On the supported processors an
 * unaligned load costs nothing.
 */
#pragma once

#include <cstddef>
#include <cstdint>

namespace ib
{

namespace detail
{
constexpr std::uint8_t swap_bytes(std::uint8_t value)
{
	return value;
}
constexpr std::uint16_t swap_bytes(std::uint16_t value)
{
	return __builtin_bswap16(value);
}
constexpr std::uint32_t swap_bytes(std::uint32_t value)
{
	return __builtin_bswap32(value);
}
constexpr std::uint64_t swap_bytes(std::uint64_t value)
{
	return __builtin_bswap64(value);
}

template<class T>
constexpr T native_to_big(T value)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? swap_bytes(value) : value;
}
} // namespace detail

/*
 * An integer of type T kept in big-endian byte order; converts from and to T implicitly, and so
 * compares as T does.
 */
template<class T>
class [[gnu::packed]] BigEndian
{
public:
	BigEndian() = default;
	constexpr BigEndian(T value) : raw_(detail::native_to_big(value)) {}

	constexpr operator T() const { return detail::native_to_big(raw_); }
	constexpr T value() const { return detail::native_to_big(raw_); }

	/* The stored bits as they lie in memory, for code that only copies or compares. */
	constexpr T raw() const { return raw_; }
	static constexpr BigEndian from_raw(T raw)
	{
		BigEndian result{};
		result.raw_ = raw;
		return result;
	}

private:
	T raw_;
};

using be16 = BigEndian<std::uint16_t>;
using be32 = BigEndian<std::uint32_t>;
using be64 = BigEndian<std::uint64_t>;

static_assert(sizeof(be16) == 2 && alignof(be16) == 1);
static_assert(sizeof(be32) == 4 && alignof(be32) == 1);
static_assert(sizeof(be64) == 8 && alignof(be64) == 1);

/* A 24-bit big-endian number: QP numbers, PSNs, OUIs. */
struct be24 {
	std::uint8_t bytes[3];

	be24() = default;
	constexpr be24(std::uint32_t value)
	    : bytes{static_cast<std::uint8_t>(value >> 16), static_cast<std::uint8_t>(value >> 8),
		    static_cast<std::uint8_t>(value)}
	{
	}
	constexpr operator std::uint32_t() const
	{
		return static_cast<std::uint32_t>(bytes[0]) << 16 |
		       static_cast<std::uint32_t>(bytes[1]) << 8 | bytes[2];
	}
};

static_assert(sizeof(be24) == 3);

/* Bits hi..lo (inclusive, bit 0 least significant) of a host-order word. */
template<unsigned hi, unsigned lo, class Word>
constexpr Word field_get(Word word)
{
	static_assert(hi >= lo && hi < sizeof(Word) * 8);
	constexpr auto mask = static_cast<std::uint64_t>(~0ULL) >> (63 - (hi - lo));
	return static_cast<Word>((static_cast<std::uint64_t>(word) >> lo) & mask);
}

/* The word with its bits hi..lo replaced; bits of value beyond the field are cut off. */
template<unsigned hi, unsigned lo, class Word>
constexpr Word field_set(Word word, std::uint64_t value)
{
	static_assert(hi >= lo && hi < sizeof(Word) * 8);
	constexpr auto mask = static_cast<std::uint64_t>(~0ULL) >> (63 - (hi - lo));
	return static_cast<Word>((static_cast<std::uint64_t>(word) & ~(mask << lo)) |
				 (value & mask) << lo);
}

} // namespace ib
