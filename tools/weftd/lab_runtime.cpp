// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "weftd/lab_runtime.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "attach/protocol.hpp"
#include "base/memory_mapping.hpp"
#include "net/fabric/switch.hpp"
#include "sm/subnet_manager.hpp"
#include "bus/vfio-user/server.hpp"
#include "bus/vhost-user/server.hpp"
#include "weftd/lab_part.hpp"
#include "weftd/link_settings.hpp"

namespace weft::weftd
{

namespace
{

std::unique_ptr<pci::Server> make_server(const LabHost &config, Loop *loop, PciDevice *card,
					 std::size_t most_mappings)
{
	if (!card)
		return nullptr;
	switch (config.bus) {
	case LabBus::vfio_user:
		return std::make_unique<vfio_user::Server>(*loop, *card, config.name,
							   most_mappings);
	case LabBus::vhost_user:
		return std::make_unique<vhost_user::Server>(*loop, *card, config.name);
	}
	throw std::logic_error("bus of a host");
}

// An untrusted host must be connected to a switch, which drops its management packets.
void check_trust(const Lab &lab)
{
	std::set<std::string> untrusted, switches;
	for (const LabHost &host : lab.hosts)
		if (!host.trusted)
			untrusted.insert(host.name);
	for (const auto &config : lab.switches)
		switches.insert(config.name);
	for (const LabLink &link : lab.links)
		for (const unsigned side : {0u, 1u}) {
			const LabEnd &own = link.ends[side], &other = link.ends[1 - side];
			if (untrusted.contains(own.node) && !switches.contains(other.node))
				throw LabError(fmt::format(
					"{}/{} is not trusted, so it must be linked to a switch, not to {}/{}",
					own.node, own.port, other.node, other.port));
		}
}

Environment &environment_of(Reactor *reactor)
{
	return reactor ? reactor->environment() : Environment::host();
}

// Ports of untrusted hosts at other places keep their M_Key when the daemon of the subnet manager
// is started again. A lab with places therefore always has the same M_Key. It is derived from the
// key of the trunks, so that it is secret.
std::uint64_t choose_mkey(const Lab &lab, Reactor *reactor)
{
	constexpr std::string_view purpose = "weft management key 1 ";
	std::uint64_t mkey = 0;
	// Places in virtual time draw different numbers, but subnet managers at two of them need
	// the same M_Key.
	if (lab.part && lab.part->options.timed) {
		VirtualEnvironment common(lab.seed);
		return sm::random_mkey(common);
	}
	if (lab.part)
		try {
			const auto &given = lab.part->options.key_file;
			const auto mac =
				trunk::Key::load(given.empty() ? lab.trunk_key_file : given)
					.authenticate({std::as_bytes(std::span(purpose)),
						       std::as_bytes(std::span(lab.name))});
			std::memcpy(&mkey, mac.data(), sizeof(mkey));
		} catch (const std::invalid_argument &) {
			// A place without trunks needs no key. complete() checks the keys of
			// trunks.
		}
	return mkey != 0 ? mkey : sm::random_mkey(environment_of(reactor));
}

} // namespace

Host::Host(const LabHost &config, std::filesystem::path socket_path,
	   std::vector<fabric::Port *> fabric_ports, std::shared_ptr<Reactor> thread,
	   std::size_t mappings, pci::Keeper *keeper)
    : name(config.name), number(config.number), guid(config.guid), model(config.model->name),
      bus(config.bus), socket(std::move(socket_path)), most_mappings(mappings), boot(config.boot),
      ports(std::move(fabric_ports)),
      ethernet(config.model->ethernet ? std::make_shared<ethernet::Channel>() : nullptr),
      reactor(std::move(thread)),
      loop(reactor ? std::make_unique<Loop>(config.name, *reactor) : nullptr),
      card(config.model->make({config.name, config.guid, ports, ethernet, config.trusted,
			       config.flags, config.polled_doorbells},
			      loop.get())),
      server(make_server(config, loop.get(), card->function(), most_mappings))
{
	if (!server)
		return;
	if (keeper)
		server->keep(*keeper);
	server->listen(socket);
}

RunningTrunk::RunningTrunk(const LabTrunk &config, fabric::Port &port, trunk::Key key)
    : name(config.name), end(port.name()), loop("trunk " + config.name),
      trunk(loop, port, {protocol_name(config.name), config.role, config.address}, std::move(key))
{
}

RunningTrunk::RunningTrunk(const LabTrunk &config, std::shared_ptr<ethernet::Channel> channel,
			   std::shared_ptr<Reactor> thread, trunk::Key key)
    : name(config.name), network(config.ethernet->network), end(config.ethernet->config.far),
      reactor(std::move(thread)), loop("trunk " + config.name, *reactor),
      trunk(loop, std::move(channel), {protocol_name(config.name), config.role, config.address},
	    std::move(key))
{
}

LabRuntime::LabRuntime(const Lab &lab, const std::filesystem::path &socket_directory,
		       Reactor *reactor, pci::Keeper *keeper, TimedTransport *transport)
    : socket_directory_(socket_directory), reactor_(reactor), keeper_(keeper),
      transport_(transport), threads_("cards", most_threads(cpu_count())),
      fabric_(lab.seed, reactor), ethernet_(lab.seed, reactor),
      timed_loop_(transport ? std::make_unique<Loop>("trunks", *reactor) : nullptr),
      attach_loop_(reactor ? nullptr : std::make_unique<Loop>("attach")),
      attach_(reactor ? nullptr
		      : std::make_unique<attach::Server>(*attach_loop_,
							 socket_directory / attach::kSocketName)),
      mkey_(choose_mkey(lab, reactor))
{
	lab_.name = lab.name;
	lab_.seed = lab.seed;
	lab_.sm_enabled = false;
	lab_.sm.guid = lab.sm.guid;
	change(compare(lab), lab);
}

LabRuntime::~LabRuntime() = default;

Environment &LabRuntime::environment() const
{
	return environment_of(reactor_);
}

Lab LabRuntime::lab() const
{
	Lab lab = lab_;
	// Look up by either port, because the file may list them in another order.
	std::map<std::string_view, const fabric::Link *> links;
	for (const fabric::Link *link : fabric_.links())
		for (const unsigned side : {0u, 1u})
			links[link->end(side).name()] = link;
	for (LabLink &link : lab.links)
		if (const auto found =
			    links.find(fmt::format("{}/{}", link.ends[0].node, link.ends[0].port));
		    found != links.end())
			link.config = config_of(*found->second);
	std::map<std::string, ethernet::LinkSettings> settings;
	for (const ethernet::AttachmentState &attachment : ethernet_.state().attachments)
		settings[attachment.name] = attachment.link.settings;
	for (LabAttachment &attachment : lab.attachments)
		attachment.link = settings.at(attachment.name());
	for (LabTrunk &trunk : lab.trunks)
		if (trunk.ethernet)
			if (const auto found = settings.find(trunk.ethernet->config.far);
			    found != settings.end())
				trunk.ethernet->link = found->second;
	return lab;
}

static std::string error_of(const LabTrunk &config, const std::exception &reason)
{
	return fmt::format("{}: trunk '{}': {}", config.where, config.name, reason.what());
}

LabDifference LabRuntime::compare(const Lab &wanted) const
{
	return compare_complete(complete(wanted));
}

LabDifference LabRuntime::compare_complete(const Lab &wanted) const
{
	LabDifference changes = difference(lab(), wanted);
	share_of_mappings(changes, wanted);
	return changes;
}

Lab LabRuntime::complete(Lab wanted) const
{
	check_trust(wanted);
	const bool timed = std::ranges::all_of(
		wanted.trunks, [](const LabTrunk &each) { return each.timed.has_value(); });
	if (reactor_ && !timed)
		throw LabError(fmt::format("{}: a lab in virtual time cannot have trunks",
					   wanted.trunks.front().where));
	for (LabTrunk &config : wanted.trunks) {
		if (config.timed)
			continue;
		try {
			config.key_fingerprint = trunk::Key::load(config.key_file).fingerprint();
		} catch (const std::exception &reason) {
			const auto running =
				std::ranges::find(lab_.trunks, config.name, &LabTrunk::name);
			if (running == lab_.trunks.end() || running->role != config.role ||
			    running->address.text() != config.address.text() ||
			    running->key_file != config.key_file)
				throw LabError(error_of(config, reason));
			// The trunk continues with its present key.
			spdlog::warn("{}", error_of(config, reason));
			config.key_fingerprint = running->key_fingerprint;
		}
	}
	return wanted;
}

LabDifference LabRuntime::apply(const Lab &wanted)
{
	if (transport_)
		throw LabError("a lab with several places in virtual time cannot be changed");
	// Keys are read once, before any change: an unsuitable key file has no effect, and if a
	// file is replaced meanwhile, the next apply() notices it.
	const Lab completed = complete(wanted);
	const LabDifference changes = compare_complete(completed);
	const Lab before = lab();
	try {
		change(changes, completed);
	} catch (const std::exception &reason) {
		spdlog::error("lab: {}; undoing all changes", reason.what());
		try {
			change(difference(lab(), before), before);
		} catch (const std::exception &second) {
			throw LabError(fmt::format("{}; undoing changes failed: {}", reason.what(),
						   second.what()));
		}
		throw LabError(reason.what());
	}
	for (const auto &line : changes.lines)
		spdlog::info("lab: {}", line);
	return changes;
}

// Parts are removed first, because new ones may need the same names, sockets or ports. lab_ is
// updated in each step, so that each step can be undone.
void LabRuntime::change(const LabDifference &changes, const Lab &wanted)
{
	++changes_;
	if (changes.manager)
		subnet_manager_.reset();
	if (changes.standby)
		standby_manager_.reset();
	for (const LabLink &link : changes.links_out)
		remove_link(link);
	remove_trunks(changes.trunks_out);
	remove_ethernets(changes);
	remove_hosts(changes.hosts_out);
	for (const auto &name : changes.switches_out) {
		end_attached(name);
		if (fabric::Switch *node = fabric_.find_switch(name))
			fabric_.remove_switch(*node);
		std::erase_if(lab_.switches,
			      [&](const auto &config) { return config.name == name; });
	}
	set_manager_port(kSmNode, lab_.sm_enabled, wanted.sm_enabled);
	set_manager_port(kStandbyNode, !lab_.sm_standby.empty(), !wanted.sm_standby.empty());
	lab_.sm_enabled = wanted.sm_enabled;
	lab_.sm_standby = wanted.sm_standby;
	lab_.sm = wanted.sm;

	for (const auto &config : wanted.switches)
		if (changes.switches_in.contains(config.name)) {
			fabric::Switch &node = fabric_.add_switch(config);
			lab_.switches.push_back(config);
			allow_attaching(config.name, {&node}, 0, true);
		}
	for (const LabHost &config : wanted.hosts)
		if (changes.hosts_in.contains(config.name)) {
			lab_.hosts.push_back(config);
			if (!config.trusted)
				untrusted_.insert(config.name);
			for (unsigned number = 1; number <= config.ports; ++number)
				fabric_.add_port(fmt::format("{}/{}", config.name, number));
		}
	for (const LabTrunk &config : wanted.trunks)
		if (changes.trunks_in.contains(config.name) && !config.ethernet) {
			lab_.trunks.push_back(config);
			fabric_.add_port(fmt::format("{}/{}", config.end.node, config.end.port));
		}
	for (const LabLink &link : changes.links_in)
		add_link(link);
	for (const LabLink &link : changes.links_set)
		change_link(*port_of(link.ends[0], link.where).link(), link.config);
	add_hosts(changes, wanted);
	add_ethernets(changes);
	std::map<std::string_view, const LabHost *> places;
	for (const LabHost &config : wanted.hosts)
		places[config.name] = &config;
	for (const auto &host : hosts_)
		host->boot = places.at(host->name)->boot;
	std::ranges::sort(hosts_, {}, [&](const auto &host) { return places.at(host->name); });
	lab_ = wanted;
	if (!changes.lines.empty())
		for (const Manager &each : subnet_managers())
			each.manager->request_sweep();
	start_managers();
	// This comes last, because it fails if an address is in use.
	add_trunks(changes, wanted);
}

void LabRuntime::remove_ethernets(const LabDifference &changes)
{
	for (const LabAttachment &attachment : changes.attachments_out) {
		ethernet_.remove_attachment(attachment.name());
		std::erase_if(lab_.attachments,
			      [&](const auto &each) { return each.host == attachment.host; });
	}
	for (const auto &name : changes.ethernets_out) {
		ethernet_.remove_switch(name);
		std::erase_if(lab_.ethernets, [&](const auto &each) { return each.name == name; });
	}
}

void LabRuntime::add_ethernets(const LabDifference &changes)
{
	for (const auto &name : changes.ethernets_in) {
		ethernet_.add_switch(name);
		lab_.ethernets.push_back({name});
	}
	for (const LabAttachment &attachment : changes.attachments_in) {
		const auto host = std::ranges::find(hosts_, attachment.host,
						    [](const auto &each) { return each->name; });
		if ((*host)->ethernet)
			ethernet_.add_card(attachment.name(), attachment.network, (*host)->ethernet,
					   attachment.link, attachment.port);
		else
			ethernet_.add_guest(attachment.name(), attachment.network,
					    socket_directory_ / attachment.socket(),
					    attachment.link, attachment.port);
		lab_.attachments.push_back(attachment);
	}
	for (const LabAttachment &attachment : changes.attachments_set)
		ethernet_.set_link(attachment.name(), attachment.link);
	for (const LabTrunk &trunk : changes.trunks_set)
		ethernet_.set_link(trunk.ethernet->config.far, trunk.ethernet->link);
}

void LabRuntime::remove_hosts(const std::set<std::string> &names)
{
	for (const auto &name : names)
		end_attached(name);
	std::erase_if(hosts_, [&](const auto &host) { return names.contains(host->name); });
	for (const LabHost &config : lab_.hosts)
		for (unsigned number = 1; names.contains(config.name) && number <= config.ports;
		     ++number)
			if (fabric::Port *port =
				    fabric_.find_port(fmt::format("{}/{}", config.name, number)))
				fabric_.remove_port(*port);
	for (const auto &name : names)
		untrusted_.erase(name);
	std::erase_if(lab_.hosts,
		      [&](const LabHost &config) { return names.contains(config.name); });
}

// The links of the hosts have already been added.
void LabRuntime::add_hosts(const LabDifference &changes, const Lab &wanted)
{
	const std::size_t most_mappings = share_of_mappings(changes, wanted);
	for (const LabHost &config : wanted.hosts) {
		if (!changes.hosts_in.contains(config.name))
			continue;
		std::vector<fabric::Port *> ports;
		for (unsigned number = 1; number <= config.ports; ++number)
			ports.push_back(&port_of({config.name, number}, config.name));
		if (config.model->pluggable)
			hosts_.push_back(std::make_unique<Host>(
				config, socket_directory_ / config.socket, std::move(ports),
				thread_for_card(), most_mappings, keeper_));
		else
			hosts_.push_back(std::make_unique<Host>(config, std::filesystem::path(),
								std::move(ports), nullptr, 0,
								nullptr));
		allow_attaching(config.name, hosts_.back()->card->local_access(), 1,
				config.trusted);
	}
}

void LabRuntime::remove_trunks(const std::set<std::string> &names)
{
	std::erase_if(trunks_, [&](const auto &trunk) { return names.contains(trunk->name); });
	for (const LabTrunk &config : lab_.trunks) {
		if (!names.contains(config.name))
			continue;
		// An attachment is missing if its trunk could not be started.
		if (config.ethernet && find_attachment(config.ethernet->config.far))
			ethernet_.remove_attachment(config.ethernet->config.far);
		if (config.ethernet)
			continue;
		if (fabric::Port *port = fabric_.find_port(
			    fmt::format("{}/{}", config.end.node, config.end.port)))
			fabric_.remove_port(*port);
	}
	std::erase_if(lab_.trunks,
		      [&](const LabTrunk &config) { return names.contains(config.name); });
}

// The links of the trunks have already been added. A trunk that cannot be started is removed with
// its link, so that applying the file again starts it; the others are started nevertheless.
void LabRuntime::add_trunks(const LabDifference &changes, const Lab &wanted)
{
	std::string failure;
	for (const LabTrunk &config : wanted.trunks) {
		if (!changes.trunks_in.contains(config.name))
			continue;
		if (config.timed) {
			timed_trunks_.emplace(
				config.timed->index,
				std::make_unique<trunk::TimedTrunk>(
					*timed_loop_, port_of(config.end, config.where),
					[this,
					 timed = *config.timed](std::span<const std::byte> frame) {
						transport_->send(timed, frame);
					}));
			continue;
		}
		try {
			trunk::Key key = trunk::Key::load(config.key_file);
			// The file may have changed since the comparison.
			std::ranges::find(lab_.trunks, config.name, &LabTrunk::name)
				->key_fingerprint = key.fingerprint();
			trunks_.push_back(start_trunk(config, std::move(key)));
		} catch (const std::exception &reason) {
			const std::vector<LabLink> links = lab_.links;
			for (const LabLink &link : links)
				if (!config.ethernet &&
				    (link.ends[0] == config.end || link.ends[1] == config.end))
					remove_link(link);
			remove_trunks({config.name});
			if (failure.empty())
				failure = error_of(config, reason);
		}
	}
	if (!failure.empty())
		throw LabError(failure);
}

const char *LabRuntime::arrive(std::uint32_t trunk, std::span<const std::byte> frame)
{
	const auto found = timed_trunks_.find(trunk);
	return found == timed_trunks_.end() ? "a frame of a trunk of other places"
					    : found->second->arrive(frame);
}

bool LabRuntime::is_timed(const fabric::Link &link) const
{
	const auto has_end = [&](const LabTrunk &each) {
		const auto port = fmt::format("{}/{}", each.end.node, each.end.port);
		return each.timed && (link.end(0).name() == port || link.end(1).name() == port);
	};
	return std::ranges::any_of(lab_.trunks, has_end);
}

std::unique_ptr<RunningTrunk> LabRuntime::start_trunk(const LabTrunk &config, trunk::Key key)
{
	if (!config.ethernet)
		return std::make_unique<RunningTrunk>(config, port_of(config.end, config.where),
						      std::move(key));
	const LabEthernetEnd &end = *config.ethernet;
	auto channel = std::make_shared<ethernet::Channel>();
	auto running = std::make_unique<RunningTrunk>(config, channel, trunk_threads_.take(),
						      std::move(key));
	ethernet_.add_trunk(end.config, end.network, std::move(channel), end.link);
	return running;
}

void LabRuntime::allow_attaching(const std::string &node, std::vector<fabric::LocalAccess *> ports,
				 std::uint32_t first_number, bool trusted)
{
	if (attach_ && !ports.empty())
		attach_->add_node(node, std::move(ports), first_number, trusted);
}

void LabRuntime::end_attached(const std::string &node)
{
	if (attach_)
		attach_->remove_node(node);
}

std::shared_ptr<Reactor> LabRuntime::thread_for_card()
{
	if (!reactor_)
		return threads_.take();
	return {std::shared_ptr<Reactor>(), reactor_}; // the reactor outlives this object
}

void LabRuntime::remove_link(const LabLink &link)
{
	fabric::Link *const old = port_of(link.ends[0], link.where).link();
	if (old)
		fabric_.disconnect(*old);
	restrict(link, false);
	std::erase_if(lab_.links, [&](const LabLink &each) {
		return std::ranges::equal(each.ends, link.ends);
	});
}

void LabRuntime::add_link(const LabLink &link)
{
	restrict(link, true);
	fabric_.connect(port_of(link.ends[0], link.where), port_of(link.ends[1], link.where),
			link.config, link.number);
	lab_.links.push_back(link);
}

void LabRuntime::set_manager_port(const char *node, bool before, bool after)
{
	const auto name = fmt::format("{}/1", node);
	if (before && !after)
		fabric_.remove_port(*fabric_.find_port(name));
	if (!before && after)
		fabric_.add_port(name);
}

void LabRuntime::start_managers()
{
	if (lab_.sm_enabled && !subnet_manager_)
		subnet_manager_ = make_manager(lab_.sm, kSmNode);
	if (!lab_.sm_standby.empty() && !standby_manager_)
		standby_manager_ = make_manager(lab_.standby(), kStandbyNode);
}

std::unique_ptr<sm::SubnetManager> LabRuntime::make_manager(sm::Config config, const char *node)
{
	config.expected = lab_.expected_ports;
	if (!config.mkey)
		config.mkey = mkey_;
	return std::make_unique<sm::SubnetManager>(port_of({node, 1}, "the subnet manager"),
						   std::move(config), reactor_);
}

std::vector<LabRuntime::Manager> LabRuntime::subnet_managers() const
{
	std::vector<Manager> managers;
	if (subnet_manager_)
		managers.push_back({subnet_manager_.get(), kSmNode});
	if (standby_manager_)
		managers.push_back({standby_manager_.get(), kStandbyNode});
	return managers;
}

LabRuntime::Manager LabRuntime::active_manager() const
{
	const auto managers = subnet_managers();
	const auto master = std::ranges::find_if(managers, [](const Manager &each) {
		return each.manager->status().state == ib::SmState::master;
	});
	if (master != managers.end())
		return *master;
	return managers.empty() ? Manager{nullptr, kSmNode} : managers.front();
}

// Each host gets an equal share of the mappings that the process may have, so that no client can
// use another's. Half of the rest is left for hosts that are added later, unless the share would
// become too small.
std::size_t LabRuntime::share_of_mappings(const LabDifference &changes, const Lab &wanted) const
{
	constexpr std::size_t enough = 64, least = 4;
	const auto come = static_cast<std::size_t>(
		std::ranges::count_if(wanted.hosts, [&](const LabHost &config) {
			return config.model->pluggable && changes.hosts_in.contains(config.name);
		}));
	if (come == 0)
		return 0;
	std::size_t left = kMaxSharedMappings;
	for (const auto &host : hosts_)
		if (!changes.hosts_out.contains(host->name))
			left -= host->most_mappings;
	const std::size_t all = left / come;
	const std::size_t share = std::min<std::size_t>(vfio_user::kMaxDmaMaps,
							std::max(all / 2, std::min(all, enough)));
	if (share < least)
		throw LabError(fmt::format(
			"cannot add {} hosts: only {} memory mappings are left for them", come,
			left));
	return share;
}

fabric::Port &LabRuntime::port_of(const LabEnd &end, const std::string &where)
{
	fabric::Port *port = fabric_.find_port(fmt::format("{}/{}", end.node, end.port));
	if (!port)
		throw LabError(
			fmt::format("{}: there is no port {}/{}", where, end.node, end.port));
	return *port;
}

void LabRuntime::restrict(const LabLink &link, bool restricted)
{
	for (const unsigned side : {0u, 1u}) {
		if (!untrusted_.contains(link.ends[side].node))
			continue;
		const LabEnd &facing = link.ends[1 - side];
		fabric_.find_switch(facing.node)->restrict_management(facing.port, restricted);
	}
}

std::optional<ethernet::AttachmentState> LabRuntime::find_attachment(std::string_view name) const
{
	for (ethernet::AttachmentState &attachment : ethernet_.state().attachments)
		if (name == attachment.link.name || name == attachment.link.ends[0].name ||
		    name == attachment.link.ends[1].name)
			return std::move(attachment);
	return std::nullopt;
}

fabric::Link &LabRuntime::find_link(std::string_view name) const
{
	if (fabric::Link *link = fabric_.find_link(name))
		return *link;
	if (const fabric::Port *port = fabric_.find_port(name)) {
		if (!port->link())
			throw std::invalid_argument(fmt::format("port {} has no link", name));
		return *port->link();
	}
	const std::string prefix = fmt::format("{}/", name);
	fabric::Link *found = nullptr;
	for (fabric::Link *link : fabric_.links()) {
		if (!link->end(0).name().starts_with(prefix) &&
		    !link->end(1).name().starts_with(prefix))
			continue;
		if (found)
			throw std::invalid_argument(fmt::format(
				"{} has several links: name a port, as in {}1", name, prefix));
		found = link;
	}
	if (!found)
		throw std::invalid_argument(
			fmt::format("there is no link, port or node '{}'", name));
	return *found;
}

} // namespace weft::weftd
