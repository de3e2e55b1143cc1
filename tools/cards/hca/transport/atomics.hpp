// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/*
 * The atomic operations of the responder, IBA 9.4.5, and their masked forms.
 */
#pragma once

#include <cstdint>
#include <optional>

#include "base/guest_memory.hpp"
#include "core/wire/headers.hpp"

namespace weft::hca::transport
{

/* Returns the word's new value. All are plain numbers, whatever the byte order of memory. */
std::uint64_t masked_compare_swap(std::uint64_t word, std::uint64_t compare,
				  std::uint64_t compare_mask, std::uint64_t swap,
				  std::uint64_t swap_mask);

/*
 * Adds field by field: a set bit of @boundary is the highest bit of a field, out of which nothing
 * is carried. With no boundary the whole word is one field.
 */
std::uint64_t masked_fetch_add(std::uint64_t word, std::uint64_t add, std::uint64_t boundary);

/**
 * execute_atomic() - carry out an atomic request on guest memory
 * @address: bus address, a multiple of eight
 * @big_endian: the guest's processors see memory so
 *
 * Atomic towards the guest's processors and all other cards. Returns the former value, or nothing
 * if the word is not there.
 */
std::optional<std::uint64_t> execute_atomic(GuestMemory &memory, std::uint64_t address,
					    const packet::Headers &headers, bool big_endian);

} // namespace weft::hca::transport
