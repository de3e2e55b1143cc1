// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Provides lab files and functions for tests of labs that several daemons run together.
#pragma once

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "weftd/lab.hpp"

namespace weft::weftd::testing
{

// A ring of three switches with a host each.
inline constexpr const char *kRing = R"(name = "ring"
trunk-key-file = "trunk.key"
[[switch]]
name = "s1"
[[switch]]
name = "s2"
[[switch]]
name = "s3"
[[host]]
name = "h1"
[[host]]
name = "h2"
[[host]]
name = "h3"
[[link]]
ends = ["s1/36", "s2/35"]
loss = "1%"
width = "1x"
[[link]]
ends = ["s2/36", "s3/35"]
[[link]]
ends = ["s3/36", "s1/35"]
delay = "1ms"
[[link]]
ends = ["h1", "s1"]
[[link]]
ends = ["h2", "s2"]
[[link]]
ends = ["h3", "s3"]
)";
inline constexpr const char *kTwoPlaces = R"([[place]]
name = "a"
address = "192.0.2.1"
[[place]]
name = "b"
address = "192.0.2.2:5000"
)";

inline std::string replaced(std::string text, const std::string &from, const std::string &to)
{
	const auto at = text.find(from);
	EXPECT_NE(at, std::string::npos) << from;
	return text.replace(at, from.size(), to);
}

// The ring with its first two switches at place a and the third one at b.
inline std::string two_places()
{
	std::string text = std::string(kRing) + kTwoPlaces;
	for (const char *const name : {"\"s1\"", "\"s2\""})
		text = replaced(text, fmt::format("name = {}", name),
				fmt::format("name = {}\nplace = \"a\"", name));
	return replaced(text, "name = \"s3\"", "name = \"s3\"\nplace = \"b\"");
}

inline Lab parse(const std::string &text)
{
	return parse_lab(text, "lab.toml");
}

} // namespace weft::weftd::testing
