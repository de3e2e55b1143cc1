// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Holds the state of an mlx4 or mthca card while a guest is connected. The state consists of the
// card's tables, queues and transport engine.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bus/pci/device.hpp"
#include "cards/hca/activity.hpp"
#include "cards/hca/agents.hpp"
#include "cards/hca/diagnostics.hpp"
#include "cards/hca/port_links.hpp"
#include "cards/hca/program_ports.hpp"
#include "cards/hca/transport.hpp"
#include "cards/mellanox_icm/bring_up.hpp"
#include "cards/mellanox_icm/command_register.hpp"
#include "cards/mellanox_icm/event_queue.hpp"
#include "cards/mellanox_icm/faults.hpp"
#include "cards/mellanox_icm/icm_map.hpp"
#include "cards/mellanox_icm/memory_table.hpp"
#include "cards/mellanox_icm/multicast_table.hpp"

namespace weft::mellanox_icm
{

/*
 * CoreBase - base class of a card's own Core. In addition to what Function needs, Kind has
 *
 *	using Commands, Doorbells, InitHca;		// the card's
 *	static constexpr BringUp::Needs kNeeds;
 *	static constexpr unsigned kVectors;
 *	static constexpr std::size_t kErrorBufferDwords;
 *	static constexpr std::uint32_t kErrorEventQueueLost;	// for break_down()
 *
 * and its Core has break_down(), calls close() in its destructor, and reports changes of a port's
 * attributes (SubnetAgent::Host) as the card does.
 */
template<class Kind>
class CoreBase : private hca::SubnetAgent::Host, private CommandRegister::Executor
{
public:
	using InitHca = typename Kind::InitHca;
	using Ports = std::vector<std::unique_ptr<hca::CardPort>>;

	// Returns to the state after power-on.
	void reset();
	// Destroys all queues and undoes INIT_HCA. The card stays running, with ICM mapped.
	void close();
	void set_bus_master(bool on);
	// Raises an interrupt of every vector without a cause.
	void interrupt_idly();

	// Executes the commands that open and close a port.
	void open_port(hca::CardPort &port);
	void close_port(hca::CardPort &port) { links_.close(port); }

	PciHost &host;
	hca::Activity &activity;
	Faults &faults;
	const bool trusted; // CardConfig
	fabric::NodeIdentity identity;
	IcmMap icm;
	MemoryTable memory;
	EventQueues events;
	MulticastTable multicast;
	Ports ports;
	hca::Agents agents;
	hca::Diagnostics diagnostics;
	typename Kind::CardContext context;
	hca::ProgramPorts &programs;
	std::unique_ptr<hca::Transport> transport;

	BringUp bring_up{Kind::kNeeds};
	InitHca init_hca{}; // as set by the driver
	std::array<std::uint32_t, Kind::kErrorBufferDwords> error_buffer{};

	CommandRegister command_register;
	typename Kind::Doorbells doorbells;

protected:
	// Properties of the card after power-on.
	struct Build {
		std::string name; // for logs
		fabric::NodeIdentity identity;
		Ports ports;
		bool trusted;
		std::uint32_t reserved_lkey;
		MulticastTable::Members members;
	};

	// @own is this object. @activity, @faults and @programs must outlive it.
	CoreBase(typename Kind::Core &own, Build build,
		 const typename Kind::TransportFactory &make_transport, PciHost &host,
		 hca::Activity &activity, Faults &faults, hca::ProgramPorts &programs);
	~CoreBase() override = default;

private:
	void port_changed(unsigned port) override
	{
		transport->port_changed(port);
		programs.port(port).changed();
	}
	void port_state_changed(unsigned port, bool active) override
	{
		events.raise_port_state(port, active);
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
	void interrupt(unsigned vector);

	typename Kind::Commands commands_;
	const fabric::NodeIdentity original_identity_;
	// Declared last, so that it is destroyed first, after which no packets arrive.
	hca::PortLinks links_;
};

template<class Kind>
CoreBase<Kind>::CoreBase(typename Kind::Core &own, Build build,
			 const typename Kind::TransportFactory &make_transport, PciHost &pci_host,
			 hca::Activity &counted, Faults &broken, hca::ProgramPorts &host_programs)
    : host(pci_host), activity(counted), faults(broken), trusted(build.trusted),
      identity(std::move(build.identity)), memory(icm, build.reserved_lkey),
      events([this](unsigned vector) { interrupt(vector); },
	     [&own] { own.break_down(Kind::kErrorEventQueueLost); },
	     [this](hw::mellanox_icm::Eqe entry, bool &wrong_owner) {
		     return faults.any() ? faults.distorted(entry, wrong_owner) : entry;
	     }),
      multicast(build.members), ports(std::move(build.ports)),
      agents(identity, ports, host.loop(), *this, trusted), context({.name = std::move(build.name),
								     .loop = host.loop(),
								     .memory = memory,
								     .events = events,
								     .multicast = multicast,
								     .management = agents,
								     .diagnostics = diagnostics,
								     .ports = ports,
								     .trusted = trusted}),
      programs(host_programs), transport(make_transport(context)), command_register(*this),
      doorbells(own), commands_(own), original_identity_(identity),
      links_(host.loop(), ports, *transport, agents.subnet(), programs)
{
	context.programs = &programs;
	set_bus_master(host.bus_master());
}

template<class Kind>
void CoreBase<Kind>::close()
{
	for (auto &port : ports)
		close_port(*port);
	std::vector<std::uint32_t> qpns;
	context.queue_pairs.for_each([&](hca::QueuePair &qp) {
		transport->qp_destroyed(qp);
		qpns.push_back(qp.qpn);
	});
	for (const std::uint32_t qpn : qpns)
		context.queue_pairs.remove(qpn);
	context.special_qps.set(0);
	context.check_address_vectors = false;
	context.ipoib_checksum = false;
	context.big_endian_host = false;
	context.queue_pairs.resize(0);
	context.completion_queues.resize(0);
	context.shared_receive_queues.resize(0);
	events.reset(0);
	multicast.reset(0, 0, 0);
	memory.set_layout({});
	init_hca = {};
	doorbells.reset();
	bring_up.close();
}

template<class Kind>
void CoreBase<Kind>::reset()
{
	close();
	links_.drop();
	for (auto &port : ports)
		port->reset();
	identity = original_identity_;
	icm.clear();
	bring_up.reset();
	error_buffer.fill(0);
	diagnostics = {};
	command_register.reset();
	host.set_intx(false);
	set_bus_master(host.bus_master());
}

template<class Kind>
void CoreBase<Kind>::set_bus_master(bool on)
{
	memory.set_memory(on ? &host.dma() : nullptr);
	transport->keys_changed();
}

template<class Kind>
void CoreBase<Kind>::interrupt_idly()
{
	for (unsigned vector = 0; vector < Kind::kVectors; ++vector)
		interrupt(vector);
}

template<class Kind>
void CoreBase<Kind>::interrupt(unsigned vector)
{
	hca::Activity::add(activity.interrupts);
	if (host.msix_enabled())
		host.raise_msix(vector);
	else
		host.set_intx(true);
}

template<class Kind>
void CoreBase<Kind>::execute(Command &command)
{
	hca::Activity::add(activity.commands);
	const hw::mellanox_icm::Status status = commands_.execute(command);
	if (faults.strikes(Fault::interrupt))
		interrupt_idly();
	command_register.complete(status, command, faults, events);
}

template<class Kind>
void CoreBase<Kind>::open_port(hca::CardPort &port)
{
	if (port.opened())
		return;
	port.set_opened(true);
	port.info().set_phys_state(ib::PhysState::polling);
	port.fabric_port().enable();
}

} // namespace weft::mellanox_icm
