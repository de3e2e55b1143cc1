// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses the command lines of weft_traffic.ko: words, most of which have the form name=value.
#pragma once
#include <kern/types.h>

namespace traffic
{

/* Parses a string that must stay valid. Numbers are decimal, or hexadecimal after 0x. */
class Arguments
{
public:
	explicit Arguments(const char *text) : text_(text) {}

	/* Returns true if this is the first word. */
	bool command(const char *word) const { return matches(text_, word); }
	/* Returns true if the string contains `name=word`. */
	bool is(const char *name, const char *word) const
	{
		const char *value = find(name);
		return value && matches(value, word);
	}
	u64 number(const char *name, u64 otherwise = 0) const
	{
		const char *at = find(name);
		if (!at)
			return otherwise;
		const bool hex = at[0] == '0' && at[1] == 'x';
		u64 value = 0;
		for (at += hex ? 2 : 0;; at++) {
			const u8 digit =
				static_cast<u8>(*at >= '0' && *at <= '9'          ? *at - '0'
						: hex && *at >= 'a' && *at <= 'f' ? *at - 'a' + 10
										  : 255);
			if (digit == 255)
				return value;
			value = value * (hex ? 16 : 10) + digit;
		}
	}

private:
	static bool ends(char c) { return c == 0 || c == ' ' || c == '\n'; }
	static bool matches(const char *at, const char *word)
	{
		while (*word && *at == *word)
			at++, word++;
		return !*word && ends(*at);
	}
	const char *find(const char *name) const
	{
		for (const char *at = text_; *at;) {
			const char *n = name, *a = at;
			while (*n && *a == *n)
				a++, n++;
			if (!*n && *a == '=')
				return a + 1;
			while (!ends(*at))
				at++;
			while (*at && ends(*at))
				at++;
		}
		return nullptr;
	}

	const char *text_;
};

} // namespace traffic
