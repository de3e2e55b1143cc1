// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/hca/transport/atomics.hpp"

namespace weft::hca::transport
{

std::uint64_t masked_compare_swap(std::uint64_t word, std::uint64_t compare,
				  std::uint64_t compare_mask, std::uint64_t swap,
				  std::uint64_t swap_mask)
{
	if (((word ^ compare) & compare_mask) != 0)
		return word;
	return (word & ~swap_mask) | (swap & swap_mask);
}

std::uint64_t masked_fetch_add(std::uint64_t word, std::uint64_t add, std::uint64_t boundary)
{
	/* Add the highest bit of each field without carry, so that no carry leaves a field. */
	std::uint64_t low = (word & ~boundary) + (add & ~boundary);
	return low ^ ((word ^ add) & boundary);
}

std::optional<std::uint64_t> execute_atomic(GuestMemory &memory, std::uint64_t address,
					    const packet::Headers &headers, bool big_endian)
{
	auto as_number = [big_endian](std::uint64_t raw) {
		return big_endian ? ib::be64::from_raw(raw).value() : raw;
	};
	const std::uint64_t operand = headers.atomic.swap_or_add;
	const std::uint64_t compare = headers.atomic.compare;
	auto change = [&](std::uint64_t word) -> std::uint64_t {
		switch (headers.bth.opcode) {
		case ib::opcode_rc_masked_compare_swap:
		case ib::opcode_xrc_masked_compare_swap:
			return masked_compare_swap(word, compare, headers.compare_mask, operand,
						   headers.swap_or_add_mask);
		case ib::opcode_rc_masked_fetch_add:
		case ib::opcode_xrc_masked_fetch_add:
			return masked_fetch_add(word, operand, headers.compare_mask);
		default:
			break;
		}
		if (ib::opcode_operation(headers.bth.opcode) == ib::Operation::compare_swap)
			return word == compare ? operand : word;
		return word + operand;
	};
	auto former = memory.fetch_update(
		address, [&](std::uint64_t raw) { return as_number(change(as_number(raw))); });
	if (!former)
		return std::nullopt;
	return as_number(*former);
}

} // namespace weft::hca::transport
