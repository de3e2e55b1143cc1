// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "cards/mlx5/core.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include <spdlog/spdlog.h>

#include "bus/pci/device.hpp"
#include "cards/mlx5/request_names.hpp"
#include "net/fabric/enable_rates.hpp"
#include "net/fabric/port_info_rules.hpp"

namespace weft::mlx5
{

namespace segment = hw::mlx5::segment;
namespace port_change = hw::mlx5::port_change;

namespace
{

// The link of a real card trains for seconds. A driver that is ready sooner does not have to wait.
constexpr auto kLinkTraining = std::chrono::seconds(1);

// Index in CardContext::special_qpns.
constexpr std::size_t kQp1OfFirstPort = 2;

std::vector<std::unique_ptr<CardPort>> make_ports(const CardConfig &config)
{
	std::vector<std::unique_ptr<CardPort>> ports;
	for (unsigned i = 0; i < config.ports.size(); ++i)
		ports.push_back(std::make_unique<CardPort>(
			i + 1, config.node_guid + i + 1, *config.ports[i],
			CardPort::Limits{.pkeys = 1u << limits::kLogPkeys}));
	return ports;
}

fabric::NodeIdentity make_identity(const CardConfig &config)
{
	return {.node_guid = config.node_guid,
		.system_image_guid = config.node_guid,
		.vendor_id = 0x0002c9, // Mellanox
		.device_id = hw::mlx5::pci_device_id,
		.description = config.name + " ConnectX-5",
		.extended_port_info = true}; // OpenSM asks for it
}

} // namespace

hca::ProgramPorts programs_of(const CardConfig &config)
{
	return {make_identity(config), make_ports(config)};
}

Core::Core(const CardConfig &config, PciHost &pci_host, Activity &counted, Unsupported &missing,
	   Faults &armed, hca::ProgramPorts &host_programs, PollCounts &polls)
    : host(pci_host), activity(counted), unsupported(missing), faults(armed),
      trusted(config.trusted), enhanced_ipoib(config.enhanced_ipoib),
      identity(make_identity(config)),
      events(
	      memory, faults, [this](unsigned vector) { interrupt(vector); },
	      [this](bool unreachable) {
		      fail(unreachable ? hw::mlx5::health::eq_error : hw::mlx5::health::eq_overrun);
	      }),
      held_completions(pci_host.loop()), ports(make_ports(config)),
      agents(identity, ports, host.loop(), *this, trusted),
      context({.name = config.name,
	       .loop = host.loop(),
	       .memory = memory,
	       .events = events,
	       .held_completions = held_completions,
	       .groups = groups,
	       .raw = raw,
	       .flows = flows,
	       .management = agents,
	       .diagnostics = diagnostics,
	       .ports = ports}),
      programs(host_programs), transport(make_transport(context)),
      polled(*this, config.polled_doorbells, polls), health(host.loop()),
      command_queue(host.loop(), *this, faults), doorbells(*this), commands_(*this),
      original_identity_(identity), link_training_(host.loop(), [this] { enable_link(); }),
      links_(host.loop(), ports, *transport, agents.subnet(), programs)
{
	context.programs = &programs;
	context.ipoib_checksum = true;
	close();
	set_bus_master(host.bus_master());
}

Core::~Core()
{
	close();
}

void Core::open()
{
	stage = Stage::initialised;
	for (auto &port : ports) {
		port->set_opened(true);
		port->info().set_phys_state(ib::PhysState::polling);
	}
	link_training_.arm(kLinkTraining);
}

Subscription::PortSet Core::active_ports() const
{
	Subscription::PortSet active = 0;
	for (unsigned number = 1; number <= ports.size(); ++number)
		if (ports[number - 1]->active())
			active |= Subscription::PortSet{1} << (number - 1);
	return active;
}

// On a busy host, the training may take less time than the driver until it subscribes. The driver
// may then have missed that the ports in @missed became active, so report it again.
void Core::driver_subscribed(Subscription::PortSet missed)
{
	enable_link();
	for (unsigned number = 1; number <= ports.size(); ++number)
		if (missed & active_ports() & Subscription::PortSet{1} << (number - 1))
			events.port_change(number, port_change::active);
}

void Core::enable_link()
{
	link_training_.cancel();
	for (auto &port : ports)
		if (port->opened())
			port->fabric_port().enable();
}

void Core::close()
{
	link_training_.cancel();
	subscription.stop();
	for (auto &port : ports)
		links_.close(*port);
	context.queue_pairs.for_each([&](hca::QueuePair &qp) { transport->qp_destroyed(qp); });
	context.queue_pairs.resize(limits::kLogQps);
	context.special_qpns.fill(0);
	held_completions.clear();
	context.completion_queues.resize(limits::kLogCqs);
	context.shared_receive_queues.resize(limits::kLogSrqs);
	events.reset();
	groups.reset();
	raw.reset();
	flows.reset();
	memory.reset();
	transport->keys_changed();
	for (NumberPool *pool :
	     {&qpns, &cqns, &srqns, &pds, &xrc_domains, &transport_domains, &uars, &polled_uars})
		pool->reset();
	pds_used.assign(std::size_t{1} << limits::kLogPds, false);
	xrc_domains_used.assign(std::size_t{1} << limits::kLogXrcDomains, false);
	transport_domains_used.assign(
		limits::kFirstNumber + (std::size_t{1} << limits::kLogTransportDomains), false);
	uars_used.assign(limits::kUarPages, false);
	doorbells.reset();
	polled.reset();
	if (stage == Stage::initialised)
		stage = Stage::enabled;
}

void Core::reset()
{
	close();
	links_.drop();
	for (auto &port : ports)
		port->reset();
	driver_rates_ = {};
	identity = original_identity_;
	diagnostics = {};
	capabilities.reset();
	stage = Stage::power_on;
	queue_high_ = queue_low_ = 0;
	command_queue.reset();
	health.reset();
	set_bus_master(host.bus_master());
}

void Core::set_bus_master(bool on)
{
	memory.set_memory(on ? &host.dma() : nullptr);
	transport->keys_changed();
}

void Core::fail(std::uint32_t syndrome)
{
	health.fail(syndrome);
}

std::uint32_t Core::read(std::uint32_t offset) const
{
	constexpr std::uint32_t firmware = limits::kFirmwareMinor << 16 | limits::kFirmwareMajor;
	if (offset >= segment::health_buffer && offset < segment::health_buffer_end)
		return health.buffer(offset, firmware, hw::mlx5::pci_device_id);
	switch (offset) {
	case segment::firmware_revision:
		return firmware;
	case segment::interface_revision:
		return segment::command_interface_revision << 16 | limits::kFirmwareSubminor;
	case segment::command_queue_high:
		return queue_high_;
	case segment::command_queue_low:
		return (queue_low_ & segment::queue_address_mask) |
		       segment::nic_interface.in(health.nic_interface()) |
		       segment::log_queue_size.in(limits::kLogCommands) |
		       segment::log_queue_stride.in(limits::kLogCommandStride);
	case segment::health_counter:
		return health.syndrome() << 24 | health.counter();
	case segment::timer_high:
	case segment::timer_low: {
		// In nanoseconds. The frequency is not reported, so drivers do not use the clock.
		const auto now = std::chrono::nanoseconds(host.loop().now().time_since_epoch());
		const auto count = static_cast<std::uint64_t>(now.count());
		return static_cast<std::uint32_t>(offset == segment::timer_high ? count >> 32
										: count);
	}
	default:
		return 0;
	}
}

void Core::write(std::uint32_t offset, std::uint32_t value)
{
	switch (offset) {
	case segment::command_queue_high:
		queue_high_ = value;
		break;
	case segment::command_queue_low:
		set_queue_address(value);
		break;
	case segment::command_doorbell:
		if (health.well())
			command_queue.ring(value);
		break;
	default:
		break;
	}
}

// The driver writes the upper half first. It also disables the card by this register. A failed card
// starts again with the queue that its driver sets for the recovery.
void Core::set_queue_address(std::uint32_t low)
{
	const std::uint32_t state = segment::nic_interface.of(low);
	const std::uint32_t high = queue_high_;
	const bool ends = state == hw::mlx5::nic_interface::disabled ||
			  state == hw::mlx5::nic_interface::software_reset;
	if (ends || !health.well())
		reset();
	if (ends)
		return;
	health.set_nic_interface(state);
	queue_high_ = high;
	queue_low_ = low & segment::queue_address_mask;
	command_queue.reset();
	command_queue.set_address(std::uint64_t{queue_high_} << 32 | queue_low_);
}

std::optional<std::uint32_t> Core::take_uar()
{
	const auto mapped = [](std::uint32_t number) { return number >= limits::kFirstPolledUar; };
	const auto first = uars_used.begin() + limits::kFirstUar;
	const bool unmapped = std::find(first, uars_used.begin() + limits::kFirstPolledUar, true) !=
			      uars_used.begin() + limits::kFirstPolledUar;
	const auto number = (polled.on() && unmapped ? polled_uars : uars).take();
	if (number && polled.on() && mapped(*number))
		polled.clear(*number);
	return number;
}

void Core::give_uar(std::uint32_t number)
{
	(polled.polls(number) ? polled_uars : uars).give(number);
}

bool Core::enable_rates(unsigned number, const fabric::EnabledRates &wanted)
{
	CardPort &port = *ports[number - 1];
	auto &rates = driver_rates_[number - 1];
	ib::PortInfo before = port.info();
	if (!fabric::enable_rates(port.info(), wanted))
		return false;
	if (rates)
		undo(before, *rates);
	rates = DriverRates{.before = before, .after = port.info()};
	port.fabric_port().enable_rates(fabric::enabled_rates(port.info()));
	return true;
}

// An attribute that differs from the driver's value was set by the subnet manager. A subnet manager
// that sets it to the driver's value cannot be told from one that repeats what it has read, as
// OpenSM does.
void Core::undo(ib::PortInfo &info, const DriverRates &rates)
{
	const ib::PortInfo &before = rates.before, &after = rates.after;
	if (info.link_width_enabled == after.link_width_enabled)
		info.link_width_enabled = before.link_width_enabled;
	if (info.speed_enabled() == after.speed_enabled())
		info.set_speed_enabled(before.speed_enabled());
	if (info.speed_ext_enabled == after.speed_ext_enabled)
		info.speed_ext_enabled = before.speed_ext_enabled;
}

void Core::restore_rates()
{
	for (unsigned number = 1; number <= ports.size(); ++number) {
		const auto rates = std::exchange(driver_rates_[number - 1], std::nullopt);
		if (!rates)
			continue;
		CardPort &port = *ports[number - 1];
		undo(port.info(), *rates);
		port.fabric_port().enable_rates(fabric::enabled_rates(port.info()));
	}
}

void Core::retire_qp(QueuePair &qp)
{
	transport->qp_destroyed(qp);
	if (context.special_qpns[kQp1OfFirstPort] == qp.qpn)
		subscription.stop();
	for (std::uint32_t &number : context.special_qpns)
		if (number == qp.qpn)
			number = 0;
	qp.state = QpState::reset;
	qp.polled_sends.reset();
}

void Core::destroy_qp(QueuePair &qp)
{
	const std::uint32_t qpn = qp.qpn;
	retire_qp(qp);
	polled.remove(qp);
	groups.forget(qpn);
	context.queue_pairs.remove(qpn);
	qpns.give(qpn);
}

void Core::interrupt_idly()
{
	for (unsigned vector = 0; vector < limits::kVectors; ++vector)
		interrupt(vector);
}

void Core::interrupt(unsigned vector)
{
	Activity::add(activity.interrupts);
	host.raise_msix(vector);
}

GuestMemory *Core::command_memory()
{
	return health.well() ? memory.memory() : nullptr;
}

hw::mlx5::Status Core::execute(Command &command)
{
	Activity::add(activity.commands);
	held_completions.write();
	if (faults.strikes(Fault::interrupt))
		interrupt_idly();
	const std::size_t in = command.in.size(), out = command.out.size();
	const hw::mlx5::Status status = commands_.execute(command);
	spdlog::debug("{}: command {} with modifier {:#x}, input {}, output {}: status {:#x}",
		      context.name,
		      name_of(RequestKind::command, static_cast<std::uint32_t>(command.opcode)),
		      command.op_modifier, in, out, static_cast<unsigned>(status));
	return status;
}

std::optional<std::uint32_t> Core::completion_queue() const
{
	return events.route(EventType::command_done);
}

void Core::command_done(std::uint32_t eqn, unsigned slot)
{
	events.commands_done(eqn, std::uint32_t{1} << slot);
}

void Core::port_changed(unsigned number)
{
	transport->port_changed(number);
	programs.port(number).changed();
}

void Core::port_state_changed(unsigned number, bool active)
{
	if (active)
		subscription.port_activates(number);
	events.port_change(number, active ? port_change::active : port_change::down);
}

void Core::port_info_changed(unsigned number, std::uint32_t changed)
{
	namespace what = hca::port_info_changed;
	if (changed & (what::kLid | what::kSmLid | what::kSmSl))
		events.port_change(number, port_change::lid);
	if (changed & what::kGidPrefix)
		events.port_change(number, port_change::guid);
	if (changed & what::kClientReregister)
		events.port_change(number, port_change::client_reregister);
}

void Core::pkeys_changed(unsigned number, unsigned, std::uint32_t)
{
	events.port_change(number, port_change::pkey);
}

void Core::guids_changed(unsigned number, unsigned, std::uint32_t)
{
	events.port_change(number, port_change::guid);
}

} // namespace weft::mlx5
