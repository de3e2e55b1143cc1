// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements an emulated ConnectX-2 host channel adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <hw/mlx4/commands.hpp>
#include <ib/types.hpp>

#include "cards/mlx4/limits.hpp"
#include "cards/mlx4/names.hpp"
#include "cards/mellanox_icm/bring_up.hpp"
#include "cards/mellanox_icm/function.hpp"
#include "cards/hca/transport.hpp"

namespace weft::fabric
{
class Port;
}

namespace weft::mlx4
{

struct CardContext;
class Commands;
class Core;
class Doorbells;

struct CardConfig {
	std::string name;        // used in logs and at the end of the node description
	ib::Guid node_guid = 0;  // not 0, and unique among nodes; port n has the GUID node_guid + n
	std::string description; // NodeDescription; if it is empty, it is derived from the name
	std::vector<fabric::Port *> ports; // one or two ports, which must outlive the card
	// True if the BARs are made too small for the resources that the card reports, to test
	// drivers.
	bool small_bars = false;
	// If false, the guest cannot manage the subnet or change the GUIDs.
	bool trusted = true;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(CardContext &)>;

// Types and constants of this card that the family's Function and CoreBase use.
struct CardKind {
	using Config = CardConfig;
	using Core = mlx4::Core;
	using CardContext = mlx4::CardContext;
	using TransportFactory = mlx4::TransportFactory;
	using Commands = mlx4::Commands;
	using Doorbells = mlx4::Doorbells;
	using InitHca = hw::mlx4::InitHca;
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

} // namespace weft::mlx4

extern template class weft::mellanox_icm::Function<weft::mlx4::CardKind>;
