// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Card models, by the names that lab files use. A model registers itself: its source has a
// Registration, and its CMakeLists.txt a weft_model(). No other code refers to it.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <ib/types.hpp>

#include "cards/card.hpp"

namespace weft
{
class Loop;
}

namespace weft::fabric
{
class Port;
}

namespace weft::ethernet
{
class Channel;
}

namespace weft::cards
{

// A lab's settings for one card.
struct Settings {
	std::string name;                  // the host's, for logs
	ib::Guid guid = 0;                 // not 0; port n may have guid + n
	std::vector<fabric::Port *> ports; // as many as the model may have; they outlive the card
	// Channel to the Ethernet that the host is on, now or later; null except for models that
	// are plugged in there.
	std::shared_ptr<ethernet::Channel> ethernet{};
	bool trusted = true; // false: its machine takes no part in managing the subnet
	std::set<std::string, std::less<>> flags; // those of the model's that are true
};

struct Model {
	std::string_view name;
	// How many ports a card of it has, at the least and at the most.
	unsigned least_ports = 1;
	unsigned most_ports = 1;
	// False: there is nothing to plug into a machine, so hosts of it have neither socket nor
	// machine.
	bool pluggable = true;
	// The host's place on an Ethernet is the card's, not that of a network device beside it.
	bool ethernet = false;
	// Keys of a host in the lab file that this model alone knows: true or false, false by
	// default.
	std::vector<std::string_view> flags;
	// A card that lives on @loop, which outlives it; null for a model that is not pluggable.
	// Throws std::invalid_argument.
	std::function<std::unique_ptr<Card>(const Settings &settings, Loop *loop)> make;
};

// Null if there is none.
const Model *find_model(std::string_view name);
// In alphabetical order.
std::vector<std::string_view> model_names();

// At namespace scope of a model's source. Throws std::logic_error if the name is taken.
class Registration
{
public:
	explicit Registration(Model model);
};

} // namespace weft::cards
