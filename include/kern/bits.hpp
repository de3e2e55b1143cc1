// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines bits and bit fields of registers and descriptors, for the host's byte order (see
// ib/endian.hpp for the wire's).
//
//	using Opcode = kern::Field<u32, 4, 0>;		// bits 4..0
//	word = Opcode::put(word, 0x0a);
//	switch (Opcode::get(word)) …
#pragma once
#include <type_traits>
#include <kern/assert.hpp>
#include <kern/types.h>

namespace kern
{

template<class T = u32>
constexpr T bit(unsigned int number)
{
	return T{1} << number;
}

/* Returns a mask of the bits high to low, inclusive. */
template<class T = u32>
constexpr T bit_mask(unsigned int high, unsigned int low)
{
	return static_cast<T>((~T{0} >> (sizeof(T) * 8 - 1 - high)) & (~T{0} << low));
}

template<class T, unsigned int High, unsigned int Low>
struct Field {
	static_assert(High >= Low && High < sizeof(T) * 8);
	static constexpr T mask = bit_mask<T>(High, Low);
	static constexpr T max = mask >> Low;

	static constexpr T get(T word) { return (word & mask) >> Low; }
	static constexpr bool fits(T value) { return value <= max; }
	/* Returns the word with the field replaced. */
	static constexpr T put(T word, T value) { return (word & ~mask) | of(value); }
	/* Returns a word that contains only this field. */
	static constexpr T of(T value)
	{
		if (!__builtin_is_constant_evaluated())
			kern_assert(fits(value));
		return (value << Low) & mask;
	}
};

template<class T>
constexpr bool is_power_of_two(T value)
{
	return value != 0 && (value & (value - 1)) == 0;
}
/* Rounds up to a multiple of `alignment`, a power of two. */
template<class T>
constexpr T align_up(T value, std::type_identity_t<T> alignment)
{
	return (value + alignment - 1) & ~(alignment - 1);
}
template<class T>
constexpr T align_down(T value, std::type_identity_t<T> alignment)
{
	return value & ~(alignment - 1);
}
template<class T>
constexpr T div_round_up(T value, std::type_identity_t<T> by)
{
	return (value + by - 1) / by;
}
/* Returns the smallest n with 2^n >= value. */
constexpr unsigned int log2_ceil(u64 value)
{
	return value <= 1 ? 0 : 64 - static_cast<unsigned int>(__builtin_clzll(value - 1));
}
constexpr u64 round_up_power_of_two(u64 value)
{
	return u64{1} << log2_ceil(value);
}

} // namespace kern
