// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weft/command_line.hpp"

#include <algorithm>
#include <numeric>

#include <CLI/CLI.hpp>

#include "base/printable.hpp"
#include "base/usage.hpp"

namespace weft::cli
{

namespace
{

using usage::path_of;
using Words = std::vector<std::string>;

// Returns the optimal string alignment distance.
std::size_t distance(std::string_view a, std::string_view b)
{
	std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
	std::iota(last.begin(), last.end(), 0);
	for (std::size_t i = 1; i <= a.size(); ++i) {
		now[0] = i;
		for (std::size_t j = 1; j <= b.size(); ++j) {
			now[j] = std::min({last[j] + 1, now[j - 1] + 1,
					   last[j - 1] + (a[i - 1] != b[j - 1])});
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = std::min(now[j], before_last[j - 2] + 1);
		}
		std::swap(before_last, last);
		std::swap(last, now);
	}
	return last[b.size()];
}

[[noreturn]] void refuse(const CLI::App &command, const std::string &what, const std::string &word,
			 std::span<const std::string> candidates)
{
	std::string text = path_of(command) + " has no " + what + " '" + printable(word) + "'";
	// Leading dashes do not count as common letters.
	const std::string dashes = word.substr(0, word.find_first_not_of('-'));
	if (const std::string meant = nearest(word.substr(dashes.size()), candidates);
	    !meant.empty())
		text += "; did you mean '" + dashes + meant + "'?";
	throw UsageError(text + "\nTry '" + path_of(command) + " --help'.");
}

// Searches a command and the commands above it, whose options may follow the command's name.
const CLI::Option *find_option(const CLI::App *command, const std::string &name)
{
	for (; command; command = command->get_parent())
		if (const CLI::Option *option = command->get_option_no_throw(name))
			return option;
	return nullptr;
}

Words option_names(const CLI::App *command)
{
	Words names;
	for (; command; command = command->get_parent())
		for (const CLI::Option *option : command->get_options())
			for (const auto &name : option->get_lnames())
				names.push_back(name);
	return names;
}

Words command_names(const CLI::App &command)
{
	Words names;
	for (const CLI::App *each : command.get_subcommands({}))
		names.push_back(each->get_name());
	return names;
}

} // namespace

std::string nearest(std::string_view word, std::span<const std::string> candidates)
{
	const std::string *best = nullptr;
	std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
	for (const auto &candidate : candidates)
		if (const auto apart = distance(word, candidate); apart < least) {
			least = apart;
			best = &candidate;
		}
	return best ? *best : std::string();
}

Words own_words(const CLI::App &app, std::span<const GuestCommand> guest_commands,
		std::span<const std::string> words)
{
	const CLI::App *command = &app;
	const GuestCommand *guest = nullptr;
	std::size_t positionals = 0;
	Words own;
	for (auto word = words.begin(); word != words.end(); ++word) {
		const bool ends = *word == "--";
		if (ends && !guest) {
			own.insert(own.end(), word, words.end());
			return own;
		}
		if (!ends && word->size() > 1 && word->front() == '-') {
			const std::string name = word->substr(0, word->find('='));
			const bool is_long = word->starts_with("--");
			const CLI::Option *option =
				find_option(command, is_long ? name : name.substr(0, 2));
			if (!option)
				refuse(*command, "option", name, option_names(command));
			own.push_back(*word);
			const bool has_value =
				is_long ? name.size() < word->size() : word->size() > 2;
			if (option->get_items_expected_max() > 0 && !has_value &&
			    word + 1 != words.end())
				own.push_back(*++word);
			continue;
		}
		if (!ends && !command->get_subcommands({}).empty()) {
			const auto below = command->get_subcommands(
				[&](const CLI::App *each) { return each->check_name(*word); });
			if (below.empty())
				refuse(*command, "command", *word, command_names(*command));
			command = below.front();
			guest = nullptr;
			for (const auto &each : guest_commands)
				if (each.command == command)
					guest = &each;
			own.push_back(*word);
			continue;
		}
		if (guest && (ends || positionals == guest->positionals)) {
			guest->words->assign(word + (ends ? 1 : 0), words.end());
			return own;
		}
		++positionals;
		own.push_back(*word);
	}
	return own;
}

} // namespace weft::cli
