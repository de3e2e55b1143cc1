// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Finds card models by the names that lab files use. A model registers itself: its source contains
// a Registration, and its CMakeLists.txt calls weft_model(). Therefore a new model needs no change
// of other C++ code.
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
	std::string name;                  // the host's name, for logs
	ib::Guid guid = 0;                 // not 0; port n may have the GUID guid + n
	std::vector<fabric::Port *> ports; // as many as the model permits; they outlive the card
	// The channel to the host's Ethernet, which may be attached later; null for models that
	// have no such channel.
	std::shared_ptr<ethernet::Channel> ethernet{};
	bool trusted = true; // false: its guest takes no part in managing the subnet
	std::set<std::string, std::less<>> flags; // the model's own settings that are true
	// The guest's doorbells are stores to memory, which the card polls.
	bool polled_doorbells = false;
};

struct Model {
	std::string_view name;
	// Minimum and maximum number of ports of a card.
	unsigned least_ports = 1;
	unsigned most_ports = 1;
	// False if no guest can have the card; its hosts then have neither socket nor guest.
	bool pluggable = true;
	// True if the card itself, and not a separate network device, is attached to the host's
	// Ethernet.
	bool ethernet = false;
	// Boolean settings of a host in the lab file that only this model has. The default is
	// false.
	std::vector<std::string_view> flags;
	// True if the model's cards can poll doorbells.
	bool polls_doorbells = false;
	// Creates a card on @loop, which must outlive it; @loop is null for a model that is not
	// pluggable. Throws std::invalid_argument.
	std::function<std::unique_ptr<Card>(const Settings &settings, Loop *loop)> make;
};

// Returns null if there is no such model.
const Model *find_model(std::string_view name);
// Returns the names of all models in alphabetical order.
std::vector<std::string_view> model_names();

// Registers a model; defined at namespace scope of the model's source. Throws std::logic_error if
// the name is taken.
class Registration
{
public:
	explicit Registration(Model model);
};

} // namespace weft::cards
