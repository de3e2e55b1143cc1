// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Reads a table of a lab file (weft-lab.toml(5)): returns values by their keys, and reports errors
// with the number of the line.
#pragma once

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "net/fabric/link.hpp"
#include "weftd/lab.hpp"
#include "weftd/link_settings.hpp"

namespace weft::weftd
{

// Returns the file and line at which a @region begins, for errors.
inline std::string place(const std::string &source, const toml::source_region &region)
{
	return fmt::format("{}:{}", source, region.begin.line);
}

// A table of the file. Keys that were requested are known; finish() refuses all others, so that a
// misspelt key is not silently ignored.
class LabSection
{
public:
	LabSection(const toml::table &table, std::string source)
	    : table_(table), source_(std::move(source))
	{
	}

	std::string where() const { return place(source_, table_.source()); }
	// Returns the location of @key, which must exist.
	std::string where(std::string_view key) { return place(source_, find(key)->source()); }
	[[noreturn]] void fail(const std::string &reason) const
	{
		throw LabError(where() + ": " + reason);
	}
	[[noreturn]] void fail(const toml::node &node, const std::string &reason) const
	{
		throw LabError(place(source_, node.source()) + ": " + reason);
	}

	const toml::node *find(std::string_view key)
	{
		known_.insert(std::string(key));
		return table_.get(key);
	}

	template<typename T>
	std::optional<T> get(std::string_view key, const char *kind)
	{
		const toml::node *node = find(key);
		if (!node)
			return std::nullopt;
		const auto value = node->value_exact<T>();
		if (!value)
			fail(*node, fmt::format("{} must be {}", key, kind));
		return value;
	}
	std::optional<std::string> text(std::string_view key)
	{
		return get<std::string>(key, "a string");
	}
	std::optional<bool> flag(std::string_view key) { return get<bool>(key, "true or false"); }
	std::optional<std::int64_t> integer(std::string_view key, std::int64_t least,
					    std::int64_t most)
	{
		const auto value = get<std::int64_t>(key, "an integer");
		if (value && (*value < least || *value > most))
			fail(*find(key), fmt::format("{} must be {} to {}", key, least, most));
		return value;
	}
	// Reads a 64-bit number. A TOML integer cannot hold all values, so a string with a
	// hexadecimal number is accepted, too.
	std::optional<std::uint64_t> word(std::string_view key)
	{
		const toml::node *node = find(key);
		if (!node)
			return std::nullopt;
		if (const auto value = node->value_exact<std::int64_t>(); value && *value >= 0)
			return static_cast<std::uint64_t>(*value);
		const auto text = node->value_exact<std::string>().value_or("");
		std::uint64_t value = 0;
		const char *begin = text.data() + (text.starts_with("0x") ? 2 : 0);
		const auto [end, error] =
			std::from_chars(begin, text.data() + text.size(), value, 16);
		if (error != std::errc() || end != text.data() + text.size())
			fail(*node,
			     fmt::format("{} must be a number, as in \"0x0002c90300001000\"", key));
		return value;
	}
	// Returns the GUID, or @fallback if there is no such key. It is an error if the GUID is 0,
	// or if there is neither a key nor a fallback (0).
	ib::Guid guid(std::string_view key, ib::Guid fallback)
	{
		const auto value = word(key);
		if (!value && !fallback)
			fail(fmt::format("there are no more default GUIDs; give it a {}", key));
		if (value == 0)
			fail(*find(key), fmt::format("{} must not be 0", key));
		return value.value_or(fallback);
	}
	std::optional<ib::Mtu> mtu(std::string_view key)
	{
		const auto value = integer(key, 256, 4096);
		if (!value)
			return std::nullopt;
		fabric::LinkConfig config;
		setting(config, "mtu", *find(key), std::to_string(*value));
		return config.mtu;
	}
	// Reads a rate in Gb/s, which must be one that links can have.
	std::optional<ib::Rate> rate(std::string_view key)
	{
		const toml::node *node = find(key);
		if (!node)
			return std::nullopt;
		const auto gbps = node->value<double>().value_or(0);
		for (unsigned code = 2; code <= static_cast<unsigned>(ib::Rate::gbps_300); ++code)
			if (ib::rate_tenths(static_cast<ib::Rate>(code)) == gbps * 10)
				return static_cast<ib::Rate>(code);
		fail(*node,
		     fmt::format("{} must be a link's in Gb/s, as in 2.5, 5, 10, 20, 40", key));
	}
	std::string name(std::string_view key)
	{
		auto value = text(key);
		if (!value)
			fail(fmt::format("it needs a {}", key));
		const auto allowed = [](unsigned char c) {
			return std::isalnum(c) || c == '_' || c == '.' || c == '-';
		};
		if (value->empty() || value->size() > 32 || !std::ranges::all_of(*value, allowed) ||
		    value->front() == '.')
			fail(*find(key), fmt::format("{} may be 1 to 32 letters, digits, '_', '-' "
						     "and '.', not first a '.'",
						     key));
		return *value;
	}
	void setting(fabric::LinkConfig &config, std::string_view key, const toml::node &node,
		     const std::string &value)
	{
		try {
			apply_link_setting(config, key, value);
		} catch (const std::invalid_argument &reason) {
			fail(node, reason.what());
		}
	}

	// Returns the tables under @key, which is an array of tables; none if it does not exist.
	std::vector<LabSection> sections(std::string_view key)
	{
		std::vector<LabSection> result;
		const toml::node *node = find(key);
		if (!node)
			return result;
		const auto *array = node->as_array();
		if (!array)
			fail(*node, fmt::format("write [[{}]] for each", key));
		for (const toml::node &element : *array) {
			if (!element.is_table())
				fail(element, fmt::format("write [[{}]] for each", key));
			result.emplace_back(*element.as_table(), source_);
		}
		return result;
	}
	std::optional<LabSection> section(std::string_view key)
	{
		const toml::node *node = find(key);
		if (!node)
			return std::nullopt;
		if (!node->is_table())
			fail(*node, fmt::format("{} must be a table", key));
		return LabSection(*node->as_table(), source_);
	}

	void finish()
	{
		for (const auto &[key, node] : table_)
			if (!known_.contains(std::string(key.str())))
				fail(node, fmt::format("there is no '{}' here; there is {}",
						       key.str(), fmt::join(known_, ", ")));
	}
	const toml::table &table() const { return table_; }

private:
	const toml::table &table_;
	std::string source_;
	std::set<std::string> known_;
};

} // namespace weft::weftd
