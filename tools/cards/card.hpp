// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Interface of a card of any model to the daemon: the PCI function for its guest (if it is more
// than an end node), its counters, and its fault injection. Models implement it (model.hpp), weftd
// uses it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace weft
{
class PciDevice;
}

namespace weft::fabric
{
class LocalAccess;
}

namespace weft::cards
{

// A number and what it counts. The name is constant and in the form of the control socket's others.
struct Count {
	std::string_view name;
	std::uint64_t value;
};

class Card
{
public:
	virtual ~Card() = default;

	// The PCI function plugged into the guest; used on the card's loop from attach() on. Null
	// for a model that is not pluggable.
	virtual PciDevice *function() { return nullptr; }

	// Access to the ports for programs that run on the host (weft attach), port 1 first; empty
	// if the model has none. As long as the card.
	virtual std::vector<fabric::LocalAccess *> local_access() { return {}; }

	/* --- any thread, waiting for nobody --- */

	// Counts of requests that its driver has made since the card was created.
	virtual std::vector<Count> activity() const { return {}; }
	// All that can be made to go wrong on it, and how often each has.
	virtual std::vector<Count> faults() const { return {}; }
	// Lets the next @count opportunities of a fault go wrong. False: it has no such fault.
	virtual bool arm_fault(std::string_view, std::uint32_t) { return false; }
	// From now on one opportunity in @one_in fails, chosen by @seed; 0 stops this. False:
	// this model has no faults that come at random.
	virtual bool randomise_faults(std::uint64_t, std::uint32_t) { return false; }
};

} // namespace weft::cards
