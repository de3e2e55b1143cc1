// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Implements the atomic operations of the responder (IBA 9.4.5) and their masked forms. */
#pragma once

#include <cstdint>
#include <optional>

#include "base/guest_memory.hpp"
#include "core/wire/headers.hpp"

namespace weft::hca::transport
{

/* Returns the new value of the word. Arguments are in host byte order. */
std::uint64_t masked_compare_swap(std::uint64_t word, std::uint64_t compare,
				  std::uint64_t compare_mask, std::uint64_t swap,
				  std::uint64_t swap_mask);

/*
 * Adds field by field: each set bit of @boundary marks the highest bit of a field, and no carry
 * leaves a field. If @boundary is 0, the whole word is one field.
 */
std::uint64_t masked_fetch_add(std::uint64_t word, std::uint64_t add, std::uint64_t boundary);

/**
 * execute_atomic() - execute an atomic request on guest memory
 * @address: bus address, a multiple of eight
 * @big_endian: true if the guest's processors are big-endian
 *
 * The operation is atomic towards the guest's processors and all other cards. Returns the former
 * value, or nothing if the word is not accessible.
 */
std::optional<std::uint64_t> execute_atomic(GuestMemory &memory, std::uint64_t address,
					    const packet::Headers &headers, bool big_endian);

} // namespace weft::hca::transport
