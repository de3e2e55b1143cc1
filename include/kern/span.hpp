// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines ranges of memory (std::span), and functions that copy and compare their bytes.
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>
#include <kern/assert.hpp>

namespace kern
{

template<class T>
using Span = std::span<T>;
using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

/* Return the bytes of an object. */
template<class T>
	requires std::is_trivially_copyable_v<T>
ConstBytes bytes_of(const T &object)
{
	return {reinterpret_cast<const std::byte *>(&object), sizeof(object)};
}
template<class T>
	requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>)
Bytes writable_bytes_of(T &object)
{
	return {reinterpret_cast<std::byte *>(&object), sizeof(object)};
}

/* Copies all bytes of `from`, which must fit into `to`. */
inline void copy(Bytes to, ConstBytes from)
{
	if (KERN_WARN_ON(from.size() > to.size()))
		return;
	__builtin_memcpy(to.data(), from.data(), from.size());
}
inline void fill(Bytes to, unsigned char value)
{
	__builtin_memset(to.data(), value, to.size());
}
inline bool equal(ConstBytes a, ConstBytes b)
{
	return a.size() == b.size() && __builtin_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace kern
