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

// The command line cannot be carried out as written; exit status 2.
class UsageError : public std::runtime_error
{
public:
	using std::runtime_error::runtime_error;
};

// A command that ends with a command for a guest, like `weft run` and `weft lab shell`.
struct GuestCommand {
	const CLI::App *command;
	// The number of its positional arguments that are weft's.
	std::size_t positionals;
	// Receives the words of the guest's command, none of which is interpreted.
	std::vector<std::string> *words;
};

// Returns weft's own words of @words, without the program's name, and stores those of a guest's
// command where @guest_commands says. The guest's command begins behind a "--", or with the first
// word that is neither an option of weft's, nor an option's value, nor one of weft's positional
// arguments; what stands behind that is the guest's, as with ssh. Throws UsageError with the
// nearest known word for a command or an option that @app does not have.
std::vector<std::string> own_words(const CLI::App &app,
				   std::span<const GuestCommand> guest_commands,
				   std::span<const std::string> words);

// Returns the candidate that is nearest to @word by insertions, deletions, replacements and
// exchanges of adjacent letters; empty if none is near enough.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

} // namespace weft::cli
