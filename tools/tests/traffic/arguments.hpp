// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Parses command lines, which consist of a command and arguments of the form name=value.
#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>

namespace weft::traffic
{

class Arguments
{
public:
	explicit Arguments(const std::string &line)
	{
		std::istringstream words(line);
		words >> command_;
		for (std::string word; words >> word;)
			if (auto at = word.find('='); at != std::string::npos)
				values_[word.substr(0, at)] = word.substr(at + 1);
	}

	const std::string &command() const { return command_; }
	std::string text(const std::string &name, const std::string &otherwise = "") const
	{
		auto found = values_.find(name);
		return found == values_.end() ? otherwise : found->second;
	}
	// Decimal, or hexadecimal after 0x. Throws std::invalid_argument.
	std::uint64_t number(const std::string &name, std::uint64_t otherwise = 0) const
	{
		auto found = values_.find(name);
		return found == values_.end() ? otherwise : std::stoull(found->second, nullptr, 0);
	}
	std::uint32_t word(const std::string &name, std::uint32_t otherwise = 0) const
	{
		return static_cast<std::uint32_t>(number(name, otherwise));
	}

private:
	std::string command_;
	std::map<std::string, std::string> values_;
};

} // namespace weft::traffic
