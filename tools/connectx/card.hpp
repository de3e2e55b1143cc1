// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// An emulated ConnectX-2 host channel adapter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ib/types.hpp>

#include "connectx/names.hpp"
#include "mellanox/activity.hpp"
#include "mellanox/faults.hpp"
#include "hca/transport.hpp"
#include "pci/device.hpp"

namespace weft::fabric
{
class Port;
}

namespace weft::connectx
{

struct CardContext;
class Core;

struct CardConfig {
	std::string name;        // for logs, and the node description's end
	ib::Guid node_guid = 0;  // not 0, unlike that of any other node; port n has node_guid + n
	std::string description; // NodeDescription; empty: made from the name
	std::vector<fabric::Port *> ports; // one or two; they outlive the card
	// Too small for what the card says it has in them: for drivers to be tried on.
	bool small_bars = false;
	// false: its machine takes no part in managing the subnet, nor does it say who it is.
	bool trusted = true;
};

using TransportFactory = std::function<std::unique_ptr<Transport>(CardContext &)>;

// Card - the PCI device. State lives from attach() to detach(); everything is on the host's loop.
class Card final : public PciDevice
{
public:
	// Throws std::invalid_argument if the configuration is not possible. @make_transport makes
	// the data path.
	Card(CardConfig config, TransportFactory make_transport);
	~Card() override;

	const PciDescription &description() const override { return description_; }
	void attach(PciHost &host) override;
	void detach() override;
	void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void region_write(unsigned bar, std::uint64_t offset,
			  std::span<const std::byte> data) override;
	void reset(PciReset kind) override;
	void memory_changed() override;
	void bus_master_changed(bool on) override;

	// The card breaks down, as hardware may: @code, not 0, appears in the catastrophic error
	// buffer, and the driver is expected to reset the card. On the loop.
	void break_down(std::uint32_t code);
	// An interrupt of every vector, for no reason. On the loop.
	void interrupt_idly();
	// On any thread.
	const Activity &activity() const { return activity_; }
	Faults &faults() { return faults_; }
	// What the control plane is made of, for tests; null while detached.
	CardContext *context();

private:
	const CardConfig config_;
	const TransportFactory make_transport_;
	const PciDescription description_;
	Activity activity_;
	Faults faults_;
	std::unique_ptr<Core> core_;
};

} // namespace weft::connectx
