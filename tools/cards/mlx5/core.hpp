// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state that a ConnectX-5 has while a guest is connected: its tables, queues and
// transport engine.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/loop.hpp"
#include "cards/hca/activity.hpp"
#include "cards/hca/agents.hpp"
#include "cards/hca/port_links.hpp"
#include "cards/hca/program_ports.hpp"
#include "cards/hca/transport.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mlx5/capabilities.hpp"
#include "cards/mlx5/card.hpp"
#include "cards/mlx5/card_context.hpp"
#include "cards/mlx5/commands.hpp"
#include "cards/mlx5/compression.hpp"
#include "cards/mlx5/doorbells.hpp"
#include "cards/mlx5/gateway.hpp"
#include "cards/mlx5/health.hpp"
#include "cards/mlx5/polled_doorbells.hpp"
#include "cards/mlx5/subscription.hpp"
#include "cards/mlx5/unsupported.hpp"

namespace weft::mlx5
{

// The progress of the card's initialisation.
enum class Stage : std::uint8_t {
	power_on,    // only ENABLE_HCA, DISABLE_HCA and NOP are permitted
	enabled,     // the driver negotiates capabilities
	initialised, // after INIT_HCA: objects exist, the link may be up
};

// Creates the access of programs of the host to a card.
hca::ProgramPorts programs_of(const CardConfig &config);

class Core final : private SubnetAgent::Host, private CommandQueue::Executor
{
public:
	// @activity, @unsupported, @faults and @polls outlive it.
	Core(const CardConfig &config, PciHost &host, Activity &activity, Unsupported &unsupported,
	     Faults &faults, hca::ProgramPorts &programs, PollCounts &polls);
	~Core() override;

	// Returns to the state after power-on.
	void reset();
	// Destroys all objects and undoes INIT_HCA.
	void close();
	// INIT_HCA.
	void open();
	void set_bus_master(bool on);
	// Raises interrupts of all vectors without a cause.
	void interrupt_idly();
	// Called after an unrecoverable error or for a simulated one: the health buffer reports
	// @syndrome, and commands are not executed any more.
	void fail(std::uint32_t syndrome);

	// Registers of the initialization segment.
	std::uint32_t read(std::uint32_t offset) const;
	void write(std::uint32_t offset, std::uint32_t value);

	// Allocates a UAR and frees it. If doorbells are polled, the first one is not mapped.
	std::optional<std::uint32_t> take_uar();
	void give_uar(std::uint32_t number);

	// Enables rates of a port, which its link uses when it trains next. Returns false if the
	// port supports none of them.
	bool enable_rates(unsigned port, const fabric::EnabledRates &wanted);
	// Undoes enable_rates(), except for attributes that the subnet manager has changed since.
	void restore_rates();

	void destroy_qp(QueuePair &qp);
	// Moves the queue pair to reset, and removes it from the transport and from the special
	// queue pairs. It stays a member of its multicast groups.
	void retire_qp(QueuePair &qp);

	PciHost &host;
	Activity &activity;
	Unsupported &unsupported;
	Faults &faults;
	const bool trusted;        // CardConfig
	const bool enhanced_ipoib; // CardConfig
	fabric::NodeIdentity identity;
	MemoryKeys memory;
	EventQueues events;
	HeldCompletions held_completions;
	MulticastGroups groups;
	RawQueues raw;
	FlowTables flows;
	std::vector<std::unique_ptr<CardPort>> ports;
	Agents agents;
	Diagnostics diagnostics;
	CardContext context;
	hca::ProgramPorts &programs;
	std::unique_ptr<Transport> transport;
	Capabilities capabilities{static_cast<unsigned>(ports.size()), enhanced_ipoib};

	Stage stage = Stage::power_on;
	PolledDoorbells polled;
	NumberPool qpns{limits::kFirstNumber, std::uint32_t{1} << limits::kLogQps};
	NumberPool cqns{limits::kFirstNumber, std::uint32_t{1} << limits::kLogCqs};
	NumberPool srqns{limits::kFirstNumber, std::uint32_t{1} << limits::kLogSrqs};
	NumberPool pds{limits::kFirstNumber, std::uint32_t{1} << limits::kLogPds};
	NumberPool xrc_domains{limits::kFirstNumber, std::uint32_t{1} << limits::kLogXrcDomains};
	NumberPool transport_domains{limits::kFirstNumber,
				     limits::kFirstNumber +
					     (std::uint32_t{1} << limits::kLogTransportDomains)};
	// UARs whose doorbells are polled; only used if polled.on().
	NumberPool polled_uars{limits::kFirstPolledUar, limits::kUarPages};
	NumberPool uars{limits::kFirstUar,
			polled.on() ? limits::kFirstPolledUar : limits::kUarPages};
	// Numbers in use, for kinds of numbers without an object.
	std::vector<bool> pds_used;
	std::vector<bool> xrc_domains_used;
	std::vector<bool> transport_domains_used;
	std::vector<bool> uars_used;

	Health health;
	CommandQueue command_queue;
	Doorbells doorbells;
	Gateway gateway{*this};
	Subscription subscription{
		host.loop(), events, [this] { return active_ports(); },
		[this](Subscription::PortSet missed) { driver_subscribed(missed); }};

private:
	// SubnetAgent::Host
	void port_changed(unsigned port) override;
	void port_state_changed(unsigned port, bool active) override;
	void port_info_changed(unsigned port, std::uint32_t changed) override;
	void pkeys_changed(unsigned port, unsigned block, std::uint32_t entries) override;
	void guids_changed(unsigned port, unsigned block, std::uint32_t entries) override;
	void order_link(unsigned port, fabric::LinkOrder order) override
	{
		links_.order(port, order);
	}
	void send_to_manager(unsigned port, const ib::Smp &smp) override
	{
		links_.send_to_manager(port, smp);
	}
	// CommandQueue::Executor
	GuestMemory *command_memory() override;
	std::size_t whole_input(hw::mlx5::Opcode opcode) const override
	{
		return Commands::whole_input(opcode);
	}
	hw::mlx5::Status execute(Command &command) override;
	std::optional<std::uint32_t> completion_queue() const override;
	void command_done(std::uint32_t eqn, unsigned slot) override;

	Subscription::PortSet active_ports() const;
	void driver_subscribed(Subscription::PortSet missed);
	// Ends the link's training, if it is in progress.
	void enable_link();
	void interrupt(unsigned vector);
	void set_queue_address(std::uint32_t low);

	Commands commands_;
	const fabric::NodeIdentity original_identity_;
	std::uint32_t queue_high_ = 0; // value written by the driver
	std::uint32_t queue_low_ = 0;
	// Attributes of a port before and after the driver has changed its enabled rates.
	struct DriverRates {
		ib::PortInfo before, after;
	};
	static void undo(ib::PortInfo &info, const DriverRates &rates);
	std::array<std::optional<DriverRates>, limits::kMostPorts> driver_rates_;
	// The link is in training until this expires.
	Timer link_training_;
	// Declared last, so that it is destroyed first and no more packets arrive.
	PortLinks links_;
};

} // namespace weft::mlx5
