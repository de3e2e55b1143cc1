// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "sm/reply_corrupter.hpp"

#include <algorithm>
#include <iterator>

namespace weft::sm
{

void ReplyCorrupter::randomise(std::uint64_t seed, std::uint32_t one_in)
{
	seed_.store(seed, std::memory_order_relaxed);
	one_in_.store(one_in, std::memory_order_release);
}

std::uint32_t ReplyCorrupter::below(std::uint32_t end)
{
	return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_);
}

void ReplyCorrupter::pass(ib::SaMad &answer)
{
	std::uint32_t one_in = one_in_.load(std::memory_order_acquire);
	if (one_in == 0)
		return;
	std::uint64_t seed = seed_.load(std::memory_order_relaxed);
	if (seed_in_use_ != seed) {
		seed_in_use_ = seed;
		random_.seed(seed);
	}
	if (below(one_in) != 0)
		return;
	auto byte = [this] { return static_cast<std::uint8_t>(below(0x100)); };
	switch (below(5)) {
	case 0: /* A record with random contents. */
		std::ranges::generate(answer.data, byte);
		break;
	case 1: /* A record with some wrong bytes. */
		for (std::uint32_t i = below(16) + 1; i > 0; i--)
			answer.data[below(64)] ^= static_cast<std::uint8_t>(below(0xff) + 1);
		break;
	case 2: /* Success without a record. */
		std::ranges::fill(answer.data, 0);
		answer.header.status = std::uint16_t{0};
		break;
	case 3: /* An error status that does not exist. */
		answer.header.status = static_cast<std::uint16_t>(below(0xffff) + 1);
		break;
	default: /* Another record than the requested one, or a part of an RMPP transfer. */
		answer.header.attr_id = static_cast<std::uint16_t>(below(0x10000));
		answer.attr_offset = static_cast<std::uint16_t>(below(0x10000));
		answer.rmpp.type = byte();
		answer.rmpp.time_flags = byte();
		break;
	}
	corrupted_.fetch_add(1, std::memory_order_relaxed);
}

} // namespace weft::sm
