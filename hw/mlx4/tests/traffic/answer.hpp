// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
/* Formats the output of a command of weft_traffic.ko. */
#pragma once

namespace traffic
{

/* The text of the last answer. */
struct Answer {
	char text[1024];
	int used = 0;

	[[gnu::format(printf, 2, 3)]] void add(const char *format, ...);
};

} // namespace traffic
