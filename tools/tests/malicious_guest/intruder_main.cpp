// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains the main function of weft-intruder. It connects to a card of a lab in place of a guest,
// and performs the actions of a malicious guest in an order determined by a seed.
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include "tests/malicious_guest/intruder.hpp"

namespace
{

// LID:GUID, the one decimal or hexadecimal, the other hexadecimal.
weft::malicious_guest::Victim parse_victim(const std::string &text)
{
	const auto colon = text.find(':');
	if (colon == std::string::npos)
		throw std::runtime_error("'" + text + "' is not LID:GUID");
	return {static_cast<std::uint16_t>(std::stoul(text.substr(0, colon), nullptr, 0)),
		std::stoull(text.substr(colon + 1), nullptr, 16)};
}

} // namespace

int main(int argc, char **argv)
{
	CLI::App app(
		"Plays a malicious guest at a card of a lab: large sends without end, memory that is not there or goes away, "
		"traps, joins and leaves for others, P_Keys and keys that are not its own, floods of queries, multicast and Ethernet. The daemon has to have fewer than sixteen "
		"descriptors left. Prints how often it did each, and what came of it.",
		"weft-intruder");
	weft::malicious_guest::IntruderOptions options;
	std::vector<std::string> victims;
	app.add_option("--card", options.card, "the card's socket")
		->required()
		->check(CLI::ExistingFile);
	app.add_option("--victim", victims, "LID:GUID of a port whose traffic is disturbed")
		->required();
	app.add_option("--ethernet", options.ethernet, "the socket of its Ethernet attachment")
		->required()
		->check(CLI::ExistingFile);
	app.add_option("--seed", options.seed, "repeats the same turns")->capture_default_str();
	app.add_option("--turns", options.turns, "how many")->capture_default_str();
	CLI11_PARSE(app, argc, argv);
	try {
		for (const auto &victim : victims)
			options.victims.push_back(parse_victim(victim));
		weft::malicious_guest::Intruder intruder(options);
		intruder.run();
		for (const auto &action : intruder.actions()) {
			std::cout << action.name << " turns=" << action.turns;
			for (const auto &[effect, number] : action.effects)
				std::cout << ' ' << effect << '=' << number;
			std::cout << '\n';
		}
	} catch (const std::exception &error) {
		std::cerr << "weft-intruder: " << error.what() << '\n';
		return 1;
	}
	return 0;
}
