// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Implements an emulated ConnectX-5 with one or two InfiniBand ports.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ib/types.hpp>

#include "bus/pci/device.hpp"
#include "cards/hca/activity.hpp"
#include "cards/hca/program_ports.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/names.hpp"
#include "cards/mlx5/polled_doorbells.hpp"
#include "cards/mlx5/unsupported.hpp"

namespace weft::fabric
{
class Port;
}

namespace weft::mlx5
{

class Core;
struct CardContext;

struct CardConfig {
	std::string name;       // for logs, and the end of the node description
	ib::Guid node_guid = 0; // not 0, and unique among nodes; port n has node_guid + n
	std::vector<fabric::Port *> ports; // one or two; they outlive the card
	// If false, the guest cannot manage the subnet.
	bool trusted = true;
	// The card reports the capability with which Linux uses mlx5_core's own network device for
	// IPoIB. The card must have one port, because the driver supports one such device for each
	// card.
	bool enhanced_ipoib = false;
	// UAR pages may be mapped by the guest, and the card polls (polled_doorbells.hpp).
	bool polled_doorbells = false;
};

// The PCI function. State lives from attach() to detach(); everything is on the host's loop.
class Card final : public PciDevice
{
public:
	// Throws std::invalid_argument if the configuration is not possible.
	explicit Card(CardConfig config);
	~Card() override;

	const PciDescription &description() const override { return description_; }
	void attach(PciHost &host) override;
	void detach() override;
	void region_read(unsigned bar, std::uint64_t offset, std::span<std::byte> data) override;
	void region_write(unsigned bar, std::uint64_t offset,
			  std::span<const std::byte> data) override;
	PciMapping mapping(unsigned bar) override;
	std::uint32_t capability_read(unsigned offset) override;
	void capability_write(unsigned offset, std::uint32_t value) override;
	void reset(PciReset kind) override;
	void memory_changed() override;
	void bus_master_changed(bool on) override;

	// Simulated failures, called on the loop: the card reports a fatal error; its firmware
	// hangs.
	void break_down();
	void freeze();
	// Raises an interrupt of each vector without a cause.
	void interrupt_idly();
	// The simulated faults, which can be armed on any thread.
	Faults &faults() { return faults_; }

	// Callable on any thread.
	const Activity &activity() const { return activity_; }
	const Unsupported &unsupported() const { return unsupported_; }
	const PollCounts &polls() const { return polls_; }
	std::vector<fabric::LocalAccess *> local_access() const { return programs_->access(); }

	// The control plane, for tests; null while detached.
	CardContext *context();

private:
	const CardConfig config_;
	const PciDescription description_;
	Activity activity_;
	Unsupported unsupported_;
	PollCounts polls_;
	Faults faults_;
	// Created when the configuration has been checked.
	std::optional<hca::ProgramPorts> programs_;
	std::unique_ptr<Core> core_;
};

} // namespace weft::mlx5
