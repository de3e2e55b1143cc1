// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Defines the interface of an emulated card: its PCI function for the guest, its counters, and its
// fault injection. Card models implement this interface (model.hpp), and weftd uses it. Models of
// end nodes, which have no guest, have no PCI function.
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

// A counter and its name. The name is constant, and formatted like other names on the control
// socket.
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

	// Access to the ports for programs on the host (weft attach), port 1 first; empty if the
	// model has none. The objects exist as long as the card.
	virtual std::vector<fabric::LocalAccess *> local_access() { return {}; }

	/* --- callable on any thread; these never block --- */

	// Counts of requests that its driver has made since the card was created.
	virtual std::vector<Count> activity() const { return {}; }
	// The faults that the card can simulate, and how often each has occurred.
	virtual std::vector<Count> faults() const { return {}; }
	// The armed faults, and how many more times each will occur. Random faults are not
	// included.
	virtual std::vector<Count> armed() const { return {}; }
	// Makes a fault occur at its next @count opportunities. Returns false if the card has no
	// such fault.
	virtual bool arm_fault(std::string_view, std::uint32_t) { return false; }
	// From now on one opportunity in @one_in fails, selected by @seed; 0 stops this. Returns
	// false if the model has no random faults.
	virtual bool randomise_faults(std::uint64_t, std::uint32_t) { return false; }
};

} // namespace weft::cards
