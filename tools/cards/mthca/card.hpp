// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// An emulated InfiniHost III Ex in memory-free mode.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ib/types.hpp>

#include "cards/hca/transport.hpp"
#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/function.hpp"

namespace weft::fabric
{
class Port;
}

namespace weft::mthca
{

struct CardContext;
class Core;

struct CardConfig {
	std::string name;       // for logs, and the end of the node description
	ib::Guid node_guid = 0; // not 0, and unique among nodes; port n has node_guid + n
	std::vector<fabric::Port *> ports; // two; they outlive the card
	// If false, the guest cannot manage the subnet or change the GUIDs and node description.
	bool trusted = true;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(Context &)>;

// Types and constants of this card that the family's PCI function uses.
struct CardKind {
	using Config = CardConfig;
	using Core = mthca::Core;
	using CardContext = mthca::CardContext;
	using TransportFactory = mthca::TransportFactory;

	static void check(const Config &config);
	static PciDescription describe(const Config &config);
	static std::uint32_t read(Core &core, std::uint64_t offset);
	static void write(Core &core, std::uint64_t offset, std::uint32_t value);
};

using Card = mellanox_icm::Function<CardKind>;

} // namespace weft::mthca

extern template class weft::mellanox_icm::Function<weft::mthca::CardKind>;
