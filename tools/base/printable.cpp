// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/printable.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace weft
{

namespace
{

constexpr std::uint32_t kInvalid = ~std::uint32_t{0};

struct Character {
	std::uint32_t code; // kInvalid if it is not UTF-8
	std::size_t bytes;
};

// Returns the first character of a text that is not empty (RFC 3629).
Character first_of(std::string_view text)
{
	const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
	if (byte(0) < 0x80)
		return {byte(0), 1};
	const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
	constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
	if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes)
		return {kInvalid, 1};
	std::uint32_t code = byte(0) & (0x7fu >> bytes);
	for (std::size_t i = 1; i < bytes; ++i) {
		if ((byte(i) & 0xc0) != 0x80)
			return {kInvalid, 1};
		code = code << 6 | (byte(i) & 0x3f);
	}
	const bool surrogate = code >= 0xd800 && code <= 0xdfff;
	return {code < least[bytes] || surrogate || code > 0x10ffff ? kInvalid : code, bytes};
}

bool may_be_shown(std::uint32_t code)
{
	const auto within = [code](std::uint32_t from, std::uint32_t to) {
		return code >= from && code <= to;
	};
	return code != kInvalid && code >= 0x20 && !within(0x7f, 0x9f) &&
	       // Changes of the writing direction, and separators of lines and paragraphs.
	       code != 0x061c && !within(0x200e, 0x200f) && !within(0x2028, 0x202e) &&
	       !within(0x2066, 0x2069);
}

template<typename Take>
void for_each_character(std::string_view text, Take &&take)
{
	while (!text.empty()) {
		const Character character = first_of(text);
		const std::size_t bytes = character.code == kInvalid ? 1 : character.bytes;
		take(text.substr(0, bytes), may_be_shown(character.code));
		text.remove_prefix(bytes);
	}
}

} // namespace

bool is_printable(std::string_view text)
{
	bool all = true;
	for_each_character(text, [&](std::string_view, bool shown) { all = all && shown; });
	return all;
}

std::string printable(std::string_view text)
{
	constexpr char digits[] = "0123456789abcdef";
	std::string result;
	result.reserve(text.size());
	for_each_character(text, [&](std::string_view bytes, bool shown) {
		if (shown) {
			result += bytes;
			return;
		}
		for (const char each : bytes) {
			const auto value = static_cast<std::uint8_t>(each);
			result += {'\\', 'x', digits[value >> 4], digits[value & 15]};
		}
	});
	return result;
}

std::string printable_lines(std::string_view text)
{
	std::string result;
	for (;;) {
		const std::size_t end = text.find('\n');
		result += printable(text.substr(0, end));
		if (end == std::string_view::npos)
			return result;
		result += '\n';
		text.remove_prefix(end + 1);
	}
}

} // namespace weft
