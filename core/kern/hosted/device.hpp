// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The device that memory is mapped for. An address that it is given is the CPU's own.
#pragma once
#include <cstdint>
#include <map>
#include <string>

struct device {
	std::string name;
	// Address of what is mapped, and where from.
	std::multimap<std::uint64_t, const void *> mapped;
};
