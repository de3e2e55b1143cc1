// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements an emulated InfiniHost III Ex in memory-free mode.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hw/mthca/commands.hpp>
#include <ib/types.hpp>

#include "cards/hca/transport.hpp"
#include "cards/mthca/limits.hpp"
#include "cards/mthca/names.hpp"
#include "cards/mellanox_icm/bring_up.hpp"
#include "cards/mellanox_icm/function.hpp"

namespace weft::fabric
{
class Port;
}

namespace weft::mthca
{

struct CardContext;
class Commands;
class Core;
class Doorbells;

struct CardConfig {
	std::string name;       // used in logs and at the end of the node description
	ib::Guid node_guid = 0; // not 0, and unique among nodes; port n has the GUID node_guid + n
	std::vector<fabric::Port *> ports; // two ports, which must outlive the card
	// If false, the guest cannot manage the subnet or change the GUIDs and node description.
	bool trusted = true;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(Context &)>;

// Types and constants of this card that the family's Function and CoreBase use.
struct CardKind {
	using Config = CardConfig;
	using Core = mthca::Core;
	using CardContext = mthca::CardContext;
	using TransportFactory = mthca::TransportFactory;
	using Commands = mthca::Commands;
	using Doorbells = mthca::Doorbells;
	using InitHca = hw::mthca::InitHca;
	static constexpr mellanox_icm::BringUp::Needs kNeeds{
		.firmware_pages = limits::kFirmwarePages, .aux_pages = limits::kAuxPages};
	static constexpr unsigned kVectors = limits::kVectors;
	static constexpr std::size_t kErrorBufferDwords = limits::kErrorBufferDwords;
	static constexpr std::uint32_t kErrorEventQueueLost = limits::kErrorEventQueueLost;

	static void check(const Config &config);
	static PciDescription describe(const Config &config);
	static hca::ProgramPorts programs(const Config &config);
	static std::uint32_t read(Core &core, std::uint64_t offset);
	static void write(Core &core, std::uint64_t offset, std::uint32_t value);
};

using Card = mellanox_icm::Function<CardKind>;

} // namespace weft::mthca

extern template class weft::mellanox_icm::Function<weft::mthca::CardKind>;
