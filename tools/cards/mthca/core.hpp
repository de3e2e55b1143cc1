// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// The state of a card while it is connected: combines its tables and engines.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include <hw/mthca/commands.hpp>

#include "cards/hca/agents.hpp"
#include "cards/hca/port_links.hpp"
#include "cards/mthca/card.hpp"
#include "cards/mthca/card_context.hpp"
#include "cards/mthca/commands.hpp"
#include "cards/mthca/doorbells.hpp"
#include "cards/mthca/limits.hpp"
#include "cards/mthca/management.hpp"
#include "cards/mellanox_icm/bring_up.hpp"
#include "cards/mellanox_icm/command_register.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mellanox_icm/icm_map.hpp"

namespace weft::mthca
{

class Core final : private SubnetAgent::Host, private CommandRegister::Executor
{
public:
	// @activity and @faults outlive it.
	Core(const CardConfig &config, const TransportFactory &make_transport, PciHost &host,
	     Activity &activity, Faults &faults);
	~Core() override;

	// Returns to the state after power-on.
	void reset();
	// Destroys all queues and undoes INIT_HCA; the card stays running, ICM mapped.
	void close();
	void set_bus_master(bool on);
	void break_down(std::uint32_t code);
	// Raises an interrupt of every vector without a cause.
	void interrupt_idly();

	// INIT_IB and CLOSE_IB.
	void open_port(CardPort &port);
	void close_port(CardPort &port) { links_.close(port); }

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
	Management management;
	Diagnostics diagnostics;
	CardContext context;
	std::unique_ptr<Transport> transport;

	mellanox_icm::BringUp bring_up{
		{.firmware_pages = limits::kFirmwarePages, .aux_pages = limits::kAuxPages}};
	hw::mthca::InitHca init_hca{}; // parameters that the driver has set
	std::array<std::uint32_t, limits::kErrorBufferDwords> error_buffer{};

	CommandRegister command_register;
	Doorbells doorbells;

private:
	// SubnetAgent::Host. Only changes of the port's state have an event, so there is none for
	// what the driver has set itself. The driver of an untrusted guest sets nothing itself: it
	// gets an event that its port is active, even if it was, and reads the attributes again.
	void raise_port_event(unsigned port);
	void port_changed(unsigned port) override;
	void port_state_changed(unsigned port, bool active) override;
	void port_info_changed(unsigned port, std::uint32_t) override { raise_port_event(port); }
	void pkeys_changed(unsigned port, unsigned, std::uint32_t) override
	{
		raise_port_event(port);
	}
	void guids_changed(unsigned port, unsigned, std::uint32_t) override
	{
		raise_port_event(port);
	}
	void order_link(unsigned port, fabric::LinkOrder order) override
	{
		links_.order(port, order);
	}
	void send_to_manager(unsigned port, const ib::Smp &smp) override
	{
		links_.send_to_manager(port, smp);
	}
	void execute(Command &command) override;
	bool driver_listens(unsigned port) const;
	void interrupt(unsigned vector);

	Commands commands_;
	const fabric::NodeIdentity original_identity_;
	// Declared last, so that it is destroyed first and no more packets arrive.
	PortLinks links_;
};

} // namespace weft::mthca
