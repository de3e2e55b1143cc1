// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx4/core.hpp"

#include <utility>

#include <hw/mlx4/registers.hpp>

#include "cards/mlx4/port_events.hpp"
#include "bus/pci/device.hpp"

namespace weft::mlx4
{

namespace
{

std::vector<std::unique_ptr<CardPort>> make_ports(const CardConfig &config)
{
	std::vector<std::unique_ptr<CardPort>> ports;
	for (unsigned i = 0; i < config.ports.size(); ++i)
		ports.push_back(std::make_unique<CardPort>(i + 1, config.node_guid + i + 1,
							   *config.ports[i]));
	return ports;
}

// Drivers interpret it as the chip's revision; 0xa0 would make them disable large sends.
constexpr std::uint32_t kRevision = 0xb0;

fabric::NodeIdentity make_identity(const CardConfig &config)
{
	return {.node_guid = config.node_guid,
		.system_image_guid = config.node_guid,
		.vendor_id = 0x0002c9, // Mellanox
		.device_id = hw::mlx4::pci_device_id,
		.revision = kRevision,
		.description = config.description.empty() ? config.name + " ConnectX-2"
							  : config.description,
		.extended_port_info = true}; // drivers of a QDR port query it
}

} // namespace

Core::Core(const CardConfig &config, const TransportFactory &make_transport, PciHost &pci_host,
	   Activity &counted, Faults &broken)
    : host(pci_host), activity(counted), faults(broken), trusted(config.trusted),
      identity(make_identity(config)), memory(icm, limits::kReservedLkey),
      events([this](unsigned vector) { interrupt(vector); },
	     [this] { break_down(limits::kErrorEventQueueLost); },
	     [this](hw::mlx4::Eqe entry, bool &wrong_owner) {
		     return faults.any() ? faults.distorted(entry, wrong_owner) : entry;
	     }),
      ports(make_ports(config)), agents(identity, ports, host.loop(), *this, trusted),
      context({.name = config.name,
	       .loop = host.loop(),
	       .memory = memory,
	       .events = events,
	       .multicast = multicast,
	       .management = agents,
	       .diagnostics = diagnostics,
	       .ports = ports}),
      transport(make_transport(context)), command_register(*this), doorbells(*this),
      commands_(*this), original_identity_(identity),
      links_(host.loop(), ports, *transport, agents.subnet())
{
	set_bus_master(host.bus_master());
}

Core::~Core()
{
	close();
}

void Core::close()
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

void Core::reset()
{
	close();
	links_.drop();
	for (auto &port : ports)
		port->reset();
	identity = original_identity_;
	icm.clear();
	bring_up.reset();
	error_buffer.fill(0);
	semaphore_taken = false;
	diagnostics = {};
	command_register.reset();
	host.set_intx(false);
	set_bus_master(host.bus_master());
}

void Core::set_bus_master(bool on)
{
	memory.set_memory(on ? &host.dma() : nullptr);
	transport->keys_changed();
}

void Core::break_down(std::uint32_t code)
{
	error_buffer[0] = code;
}

void Core::interrupt_idly()
{
	for (unsigned vector = 0; vector < limits::kVectors; ++vector)
		interrupt(vector);
}

void Core::interrupt(unsigned vector)
{
	Activity::add(activity.interrupts);
	if (host.msix_enabled())
		host.raise_msix(vector);
	else
		host.set_intx(true);
}

void Core::execute(Command &command)
{
	Activity::add(activity.commands);
	const hw::mlx4::Status status = commands_.execute(command);
	if (faults.strikes(Fault::interrupt))
		interrupt_idly();
	command_register.complete(status, command, faults, events);
}

void Core::open_port(CardPort &port)
{
	if (port.opened())
		return;
	port.set_opened(true);
	port.info().set_phys_state(ib::PhysState::polling);
	port.fabric_port().enable();
}

void Core::port_changed(unsigned number)
{
	transport->port_changed(number);
}

void Core::port_state_changed(unsigned number, bool active)
{
	events.raise_port_state(number, active);
}

void Core::port_info_changed(unsigned number, std::uint32_t changed)
{
	raise_port_info(events, *ports[number - 1], changed);
}

void Core::pkeys_changed(unsigned number, unsigned block, std::uint32_t entries)
{
	raise_pkey_table(events, number, block, entries);
}

void Core::guids_changed(unsigned number, unsigned block, std::uint32_t entries)
{
	raise_guid_info(events, number, block, entries);
}

} // namespace weft::mlx4
