// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Texts of weft's and weftd's command lines: the output of --help, and messages about an invalid
// command line.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace CLI
{
class App;
class FormatterBase;
class ParseError;
class Validator;
} // namespace CLI

namespace weft::usage
{

// The exit status for an invalid command line.
constexpr int kStatus = 2;

// Returns the full name of a command, such as "weft lab shell".
std::string path_of(const CLI::App &command);

// Formats the output of --help: an option is followed by the name of its value or by its possible
// values, and descriptions are wrapped.
std::shared_ptr<CLI::FormatterBase> formatter();

// Accepts one of @values, an integer, or a number.
CLI::Validator one_of(const std::vector<std::string> &values);
CLI::Validator integer(std::uint64_t least, std::uint64_t most);
CLI::Validator number(double least, double most);

// Returns the message about an error in the command line of @app, with the command and the reason.
std::string message(const CLI::App &app, const CLI::ParseError &error);

// Prints the help that the user has requested, the version, or the message about the error.
// Returns the exit status.
int report(const CLI::App &app, const CLI::ParseError &error);

} // namespace weft::usage
