// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// All that a card is while it is plugged in: its tables and engines, put together.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <hw/connectx/commands.hpp>

#include "connectx/names.hpp"
#include "mellanox/activity.hpp"
#include "mellanox/bring_up.hpp"
#include "hca/agents.hpp"
#include "connectx/card.hpp"
#include "connectx/card_context.hpp"
#include "connectx/commands.hpp"
#include "mellanox/command_register.hpp"
#include "connectx/doorbells.hpp"
#include "mellanox/faults.hpp"
#include "mellanox/icm_map.hpp"
#include "connectx/limits.hpp"
#include "hca/port_link.hpp"
#include "hca/transport.hpp"

namespace weft::connectx
{

class Core final : private SubnetAgent::Host, private CommandRegister::Executor
{
public:
	// @activity and @faults outlive it.
	Core(const CardConfig &config, const TransportFactory &make_transport, PciHost &host,
	     Activity &activity, Faults &faults);
	~Core() override;

	// To the state after power-on.
	void reset();
	// Ends all queues and forgets INIT_HCA; the card stays running, ICM mapped.
	void close();
	void set_bus_master(bool on);
	void break_down(std::uint32_t code);
	// An interrupt of every vector, for no reason.
	void interrupt_idly();

	// The link of @port came up or went, or did both.
	void link_changed(unsigned port, bool was_down);
	// INIT_PORT and CLOSE_PORT.
	void open_port(CardPort &port);
	void close_port(CardPort &port);

	PciHost &host;
	Activity &activity;
	Faults &faults;
	const bool trusted; // CardConfig
	fabric::NodeIdentity identity;
	IcmMap icm;
	MemoryTable memory;
	EventQueues events;
	MulticastTable multicast;
	std::vector<std::unique_ptr<CardPort>> ports;
	Agents agents;
	Diagnostics diagnostics;
	CardContext context;
	std::unique_ptr<Transport> transport;

	mellanox::BringUp bring_up{
		{.firmware_pages = limits::kFirmwarePages, .aux_pages = limits::kAuxPages}};
	hw::connectx::InitHca init_hca{}; // as the driver gave it
	std::array<std::uint32_t, limits::kErrorBufferDwords> error_buffer{};
	bool semaphore_taken = false;

	CommandRegister command_register;
	Doorbells doorbells;

private:
	void port_changed(unsigned port) override;
	void port_state_changed(unsigned port, bool active) override;
	void port_info_changed(unsigned port, std::uint32_t changed) override;
	void pkeys_changed(unsigned port, unsigned block, std::uint32_t entries) override;
	void guids_changed(unsigned port, unsigned block, std::uint32_t entries) override;
	void order_link(unsigned port, fabric::LinkOrder order) override;
	void send_to_manager(unsigned port, const ib::Smp &smp) override;
	void execute(Command &command) override;
	void interrupt(unsigned vector);

	Commands commands_;
	const fabric::NodeIdentity original_identity_;
	// The last member: packets stop coming before anything else goes.
	std::vector<std::unique_ptr<PortLink>> links_;
};

} // namespace weft::connectx
