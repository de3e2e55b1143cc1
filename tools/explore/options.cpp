// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "options.hpp"
#include <charconv>
#include <fmt/format.h>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace explore
{

namespace
{

constexpr const char *kHelp =
	R"(usage: weft-explore [--seeds FIRST..LAST] [--seconds N] [--steps N] [--list] [REGEX]

Runs cases of the kernel half, compiled into this program, under many interleavings: the strategy of each seed says who goes on at each call
of the kernel and each atomic access. A failure is printed with its seed and the interleaving, without what it fails without.

  REGEX               of the names of cases, SUITE.CASE; all by default
  --seeds FIRST..LAST the seeds, 1..1000 by default; or one
  --seconds N         no more of a case than that
  --steps N           a run that takes more is stopped and reported (2000000)
  --list              names the cases
  --help              this
)";

template<class T>
T number(std::string_view option, std::string_view text)
{
	T value{};
	const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);

	if (error != std::errc{} || end != text.data() + text.size())
		throw std::runtime_error(fmt::format("{} takes a number, not '{}'", option, text));
	return value;
}

} // namespace

std::optional<Options> parse(int argc, char **argv)
{
	const std::vector<std::string_view> words(argv + 1, argv + argc);
	Options options;

	for (std::size_t i = 0; i < words.size(); i++) {
		const std::string_view word = words[i];
		const auto value = [&] {
			if (++i == words.size())
				throw std::runtime_error(fmt::format("{} takes a value", word));
			return words[i];
		};
		if (word == "--help") {
			fmt::print("{}", kHelp);
			return std::nullopt;
		}
		if (word == "--list") {
			options.list = true;
		} else if (word == "--seeds") {
			const std::string_view range = value();
			const auto dots = range.find("..");
			options.first_seed = number<std::uint64_t>(word, range.substr(0, dots));
			options.last_seed =
				dots == range.npos
					? options.first_seed
					: number<std::uint64_t>(word, range.substr(dots + 2));
			if (options.first_seed == 0 || options.last_seed < options.first_seed)
				throw std::runtime_error(
					"--seeds takes a range from 1, such as 1..1000");
		} else if (word == "--seconds") {
			options.limits.seconds = number<double>(word, value());
		} else if (word == "--steps") {
			options.limits.steps = number<std::uint64_t>(word, value());
		} else if (word.starts_with("--") || !options.pattern.empty()) {
			throw std::runtime_error(fmt::format(
				"'{}' is not understood; see weft-explore --help", word));
		} else {
			options.pattern = word;
		}
	}
	return options;
}

} // namespace explore
