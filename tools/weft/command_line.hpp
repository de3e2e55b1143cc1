// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Splits a command line into weft's own arguments and the command for a guest, and reports unknown
// words before CLI11 sees them.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI
{
class App;
}

namespace weft::cli
{

// The command line is invalid. The exit status is 2.
class UsageError : public std::runtime_error
{
public:
	using std::runtime_error::runtime_error;
};

// A command that ends with a command for a guest, like `weft run` and `weft lab shell`.
struct GuestCommand {
	const CLI::App *command;
	// Number of positional arguments that belong to weft.
	std::size_t positionals;
	// Receives the words of the guest's command, which are not interpreted.
	std::vector<std::string> *words;
};

// Returns weft's own words of @words, without the program's name, and stores those of a guest's
// command as @guest_commands specifies. The guest's command begins after "--", or with the first
// word that is neither an option of weft, nor an option's value, nor one of weft's positional
// arguments. All words from there on are the guest's, as with ssh. If @app does not have a command
// or option, throws UsageError with the nearest known word.
std::vector<std::string> own_words(const CLI::App &app,
				   std::span<const GuestCommand> guest_commands,
				   std::span<const std::string> words);

// Returns the candidate that is nearest to @word by insertions, deletions, replacements and
// exchanges of adjacent letters. Returns an empty string if none is near enough.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

} // namespace weft::cli
