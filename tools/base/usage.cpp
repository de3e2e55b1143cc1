// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "base/usage.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iostream>
#include <numeric>
#include <sstream>
#include <string_view>
#include <system_error>

#include <CLI/CLI.hpp>

#include "base/printable.hpp"

namespace weft::usage
{

namespace
{

// Total width of a line, and the column in which descriptions begin.
constexpr std::size_t kWidth = 80;
constexpr std::size_t kColumn = 30;

std::string joined(const std::vector<std::string> &words, const std::string &separator)
{
	std::string text;
	for (const auto &word : words)
		text += (text.empty() ? "" : separator) + word;
	return text;
}

// Breaks a text into lines that fit into the column of descriptions.
std::string wrapped(const std::string &text)
{
	std::istringstream words(text);
	std::string lines, word;
	std::size_t used = 0;
	while (words >> word) {
		const bool fits = used + 1 + word.size() <= kWidth - kColumn;
		if (used)
			lines += fits ? ' ' : '\n';
		used = used && fits ? used + 1 + word.size() : word.size();
		lines += word;
	}
	return lines;
}

// Removes @end from the end of @text, and returns whether it was there.
bool without(std::string &text, std::string_view end)
{
	if (!text.ends_with(end))
		return false;
	text.resize(text.size() - end.size());
	return true;
}

// The name of an option's value, and the descriptions of its validators.
struct Value {
	explicit Value(const CLI::Option &option) : name(option.get_type_name())
	{
		while (without(name, ":FILE") || without(name, ":DIR"))
			;
		if (const auto set = name.find(":{"); set != std::string::npos) {
			name = name.substr(set + 1);
		} else if (const auto limits = name.find(":["); limits != std::string::npos) {
			range = name.substr(limits + 2, name.size() - limits - 3);
			name.resize(limits);
		}
	}
	std::string name, range;
};

class Formatter : public CLI::Formatter
{
public:
	Formatter() { column_width(kColumn); }

protected:
	std::string make_option(const CLI::Option *option, bool positional) const override
	{
		std::ostringstream out;
		CLI::detail::format_help(
			out, make_option_name(option, positional) + make_option_opts(option),
			wrapped(make_option_desc(option)), kColumn);
		return out.str();
	}
	std::string make_subcommand(const CLI::App *command) const override
	{
		std::ostringstream out;
		CLI::detail::format_help(out, command->get_name(),
					 wrapped(command->get_description()), kColumn);
		return out.str();
	}
	std::string make_option_opts(const CLI::Option *option) const override
	{
		if (option->get_items_expected_max() == 0)
			return "";
		if (option->get_positional())
			return option->get_expected_max() > 1 ? "..." : "";
		return " " + Value(*option).name;
	}
	std::string make_option_desc(const CLI::Option *option) const override
	{
		std::string text = option->get_description();
		if (const auto range = Value(*option).range; !range.empty())
			text += " (" + range + ")";
		if (!option->get_default_str().empty())
			text += " (default: " + option->get_default_str() + ")";
		if (option->get_required() && !option->get_positional())
			text += " (required)";
		return text;
	}
};

// Returns the text with the start @from replaced by @to, or an empty string.
std::string reworded(const std::string &text, std::string_view from, std::string_view to)
{
	return text.starts_with(from) ? std::string(to) + text.substr(from.size()) : "";
}

std::string reason(const CLI::App &command, const CLI::ParseError &error)
{
	const std::string text = error.what();
	if (text == "A subcommand is required") {
		std::vector<std::string> names;
		for (const CLI::App *each : command.get_subcommands({}))
			names.push_back(each->get_name());
		return "a command is missing: " + joined(names, ", ");
	}
	for (const char *const start : {"The following argument was not expected: ",
					"The following arguments were not expected: "})
		if (const auto other = reworded(text, start, "unexpected argument: ");
		    !other.empty())
			return other;
	if (const auto end = text.find(": 1 required "); end != std::string::npos)
		return text.substr(0, end) + " needs a value";
	if (const auto excludes = text.find(" excludes "); excludes != std::string::npos)
		return text.substr(0, excludes) + " cannot be combined with " +
		       text.substr(excludes + 10);
	return text;
}

} // namespace

std::string path_of(const CLI::App &command)
{
	const CLI::App *parent = command.get_parent();
	return (parent ? path_of(*parent) + " " : "") + command.get_name();
}

std::shared_ptr<CLI::FormatterBase> formatter()
{
	return std::make_shared<Formatter>();
}

CLI::Validator one_of(const std::vector<std::string> &values)
{
	return {[values](const std::string &value) -> std::string {
			if (std::ranges::find(values, value) != values.end())
				return "";
			return "'" + value + "' is not one of " + joined(values, ", ");
		},
		"{" + joined(values, ",") + "}"};
}

CLI::Validator integer(std::uint64_t least, std::uint64_t most)
{
	const std::string range = std::to_string(least) + " to " + std::to_string(most);
	return {[least, most, range](const std::string &value) -> std::string {
			const bool hexadecimal = value.starts_with("0x");
			const char *const start = value.data() + (hexadecimal ? 2 : 0);
			const char *const end = value.data() + value.size();
			std::uint64_t result = 0;
			const auto [rest, failure] =
				std::from_chars(start, end, result, hexadecimal ? 16 : 10);
			if (failure == std::errc() && rest == end && result >= least &&
			    result <= most)
				return "";
			return "'" + value + "' is not an integer from " + range;
		},
		// A larger limit is only that of the type.
		most < INT32_MAX ? "[" + range + "]" : ""};
}

CLI::Validator number(double least, double most)
{
	std::ostringstream range;
	range.precision(10);
	range << least << " to " << most;
	return {[least, most, range = range.str()](const std::string &value) -> std::string {
			double result = 0;
			const auto [rest, failure] =
				std::from_chars(value.data(), value.data() + value.size(), result);
			if (failure == std::errc() && rest == value.data() + value.size() &&
			    result >= least && result <= most)
				return "";
			return "'" + value + "' is not a number from " + range;
		},
		"[" + range.str() + "]"};
}

std::string message(const CLI::App &app, const CLI::ParseError &error)
{
	const CLI::App *command = &app;
	while (!command->get_subcommands().empty())
		command = command->get_subcommands().front();
	const std::string path = path_of(*command);
	return path + ": " + printable(reason(*command, error)) + "\nTry '" + path + " --help'.";
}

int report(const CLI::App &app, const CLI::ParseError &error)
{
	if (error.get_exit_code() == 0) {
		app.exit(error);
		if (std::cout.flush())
			return 0;
		std::cerr << path_of(app) << ": cannot write standard output: "
			  << std::generic_category().message(errno) << '\n';
		return 1;
	}
	std::cerr << message(app, error) << '\n';
	return kStatus;
}

} // namespace weft::usage
