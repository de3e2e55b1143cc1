// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
#include "net/ethernet/switch.hpp"
#include "weftd/lab.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "weftd/default_guids.hpp"
#include "weftd/lab_manager.hpp"
#include "weftd/lab_numbers.hpp"
#include "weftd/lab_plan.hpp"
#include "weftd/lab_ports.hpp"
#include "weftd/lab_section.hpp"
#include "weftd/link_settings.hpp"

namespace weft::weftd
{

namespace
{

/*
 * Approximate training time of a real link. Drivers rely on it: if a port becomes active while
 * Linux is still registering the device, the device's SA client never learns the address of the
 * subnet manager.
 */
constexpr std::chrono::milliseconds kTraining{250};

constexpr const char *kDefaultModel = "mlx4";

constexpr std::string_view kDefaultLab = R"(
[[switch]]
name = "switch1"
ports = 8

[[host]]
name = "node1"

[[host]]
name = "node2"

[[link]]
ends = ["node1", "switch1"]

[[link]]
ends = ["node2", "switch1"]
)";

std::string scalar_text(const toml::node &node)
{
	if (const auto text = node.value_exact<std::string>())
		return *text;
	if (const auto number = node.value_exact<std::int64_t>())
		return std::to_string(*number);
	if (const auto number = node.value_exact<double>())
		return fmt::format("{}", *number);
	if (const auto flag = node.value_exact<bool>())
		return *flag ? "true" : "false";
	return {};
}

// Parses "node" or "node/port".
LabEnd parse_end(const LabSection &section, const toml::node &node)
{
	const auto text = node.value_exact<std::string>();
	if (!text)
		section.fail(node, "an end is a string, as in \"node1\" or \"switch1/3\"");
	const auto slash = text->find('/');
	LabEnd end{text->substr(0, slash), 0};
	if (slash == std::string::npos)
		return end;
	const char *begin = text->data() + slash + 1;
	const auto [last, error] = std::from_chars(begin, text->data() + text->size(), end.port);
	if (error != std::errc() || last != text->data() + text->size() || end.port == 0)
		section.fail(node, fmt::format("'{}' does not end in a port's number", *text));
	return end;
}

void parse_settings(LabSection &section, LabLink &link)
{
	link.where = section.where();
	link.config.training = kTraining;
	for (const auto name : link_setting_names())
		if (const toml::node *node = section.find(name))
			section.setting(link.config, name, *node, scalar_text(*node));
}

LabLink parse_link(LabSection &section)
{
	LabLink link;
	parse_settings(section, link);
	const toml::node *ends = section.find("ends");
	if (!ends || !ends->is_array() || ends->as_array()->size() != 2)
		section.fail("a link needs ends = [\"NODE\", \"NODE\"]");
	for (std::size_t i = 0; i < 2; ++i)
		link.ends[i] = parse_end(section, *ends->as_array()->get(i));
	section.finish();
	return link;
}

// Parses a trunk, and the link between it and its local end.
void parse_trunk(LabSection &section, Lab &lab)
{
	LabTrunk trunk;
	trunk.where = section.where();
	trunk.name = section.name("name");
	trunk.end = {trunk.name, 1};
	const auto listen = section.text("listen"), connect = section.text("connect");
	if (listen.has_value() == connect.has_value())
		section.fail("a trunk needs either listen = \"ADDRESS:PORT\" or connect = "
			     "\"ADDRESS:PORT\"");
	trunk.role = listen ? trunk::Role::listens : trunk::Role::connects;
	const char *const key = listen ? "listen" : "connect";
	try {
		trunk.address = trunk::Address::parse(listen ? *listen : *connect);
	} catch (const std::invalid_argument &reason) {
		section.fail(*section.find(key), fmt::format("{}: {}", key, reason.what()));
	}
	if (connect && !trunk.address.has_port())
		section.fail(*section.find(key), "connect: port 0 is only for listen");
	const auto file = section.text("key-file");
	if (!file || file->empty())
		section.fail("a trunk needs a key-file, which both ends share");
	trunk.key_file = *file;
	LabLink link;
	parse_settings(section, link);
	const toml::node *end = section.find("end");
	if (!end)
		section.fail("a trunk needs end = \"NODE\"");
	link.ends[0] = parse_end(section, *end);
	link.ends[1] = trunk.end;
	section.finish();
	lab.trunks.push_back(std::move(trunk));
	lab.links.push_back(std::move(link));
}

LabPlace parse_place(LabSection &section, const std::vector<LabPlace> &others)
{
	LabPlace result;
	result.where = section.where();
	result.name = section.name("name");
	if (result.name.starts_with('-'))
		section.fail(*section.find("name"), "the name of a place must not begin with '-', "
						    "because it is an argument of options");
	if (others.size() >= kMostPlaces)
		section.fail(fmt::format("a lab has at most {} places", kMostPlaces));
	if (std::ranges::find(others, result.name, &LabPlace::name) != others.end())
		section.fail(fmt::format("the place '{}' is given twice", result.name));
	if (const auto address = section.text("address")) {
		try {
			result.address = trunk::Address::parse(with_trunk_port(*address));
		} catch (const std::invalid_argument &reason) {
			section.fail(*section.find("address"),
				     fmt::format("address: {}", reason.what()));
		}
		if (!result.address->has_port())
			section.fail(*section.find("address"),
				     "address: the other places must know the port, so it must "
				     "not be 0");
		// Other places connect to it.
		if (!result.address->is_of_one_host())
			section.fail(*section.find("address"),
				     "address: it must be the address of one host, at which other "
				     "places reach this place");
		if (!has_trunk_port(*address))
			result.address = result.address->with_port(0);
	}
	section.finish();
	return result;
}

// Reads the place of the node that the section describes.
LabPlaces::Node parse_home(LabSection &section, const LabPlaces &places)
{
	LabPlaces::Node node{section.text("place").value_or(""), section.where()};
	if (const toml::node *place = section.find("place");
	    place &&
	    std::ranges::find(places.places, node.place, &LabPlace::name) == places.places.end())
		section.fail(*place, fmt::format("there is no [[place]] '{}'", node.place));
	return node;
}

/*
 * Chooses GUIDs for nodes without one in the file: that of the running lab's node with the same
 * name, or else the next default GUID that the running lab does not use.
 */
class GuidChoice
{
public:
	GuidChoice(const DefaultGuids &guids, const Lab *running) : guids_(guids), running_(running)
	{
		if (!running)
			return;
		for (const LabHost &host : running->hosts)
			used_.insert(host.guid);
		for (const fabric::SwitchConfig &config : running->switches)
			used_.insert(config.guid);
	}

	// Returns the GUID for host @index of the file; 0 if no default GUID is left.
	ib::Guid host(const std::string &name, std::size_t index)
	{
		return choose(running_ ? &running_->hosts : nullptr, name, index,
			      [&](std::size_t i) { return guids_.host(i); });
	}
	ib::Guid switch_node(const std::string &name, std::size_t index)
	{
		return choose(running_ ? &running_->switches : nullptr, name, index,
			      [&](std::size_t i) { return guids_.switch_node(i); });
	}

private:
	template<typename Node, typename Default>
	ib::Guid choose(const std::vector<Node> *running, const std::string &name,
			std::size_t index, Default of)
	{
		if (running)
			if (const auto known = std::ranges::find(*running, name, &Node::name);
			    known != running->end())
				return known->guid;
		ib::Guid guid = of(index);
		while (guid && !used_.insert(guid).second)
			guid = of(++index);
		return guid;
	}

	const DefaultGuids &guids_;
	const Lab *const running_;
	std::set<ib::Guid> used_;
};

fabric::SwitchConfig parse_switch(LabSection &section, GuidChoice &guids, std::size_t index)
{
	fabric::SwitchConfig config;
	config.name = section.name("name");
	config.ports = static_cast<unsigned>(section.integer("ports", 1, 254).value_or(36));
	config.guid = section.guid("guid", guids.switch_node(config.name, index));
	config.mtu = section.mtu("mtu").value_or(config.mtu);
	section.finish();
	return config;
}

LabBus parse_bus(LabSection &section, LabBus other)
{
	const auto name = section.text("bus");
	if (!name)
		return other;
	for (const LabBus bus : {LabBus::vfio_user, LabBus::vhost_user})
		if (*name == text_of(bus))
			return bus;
	section.fail(*section.find("bus"), "bus must be \"vfio-user\" or \"vhost-user\"");
}

// Returns whether the card polls its doorbells. The pages of a card can be mapped over vfio-user
// only; the default of the lab does not apply to other hosts.
bool parse_doorbells(LabSection &section, const LabHost &host, const Lab &lab)
{
	const auto how = section.text("doorbells");
	if (!how)
		return lab.polled_doorbells && host.bus == LabBus::vfio_user;
	const toml::node &place = *section.find("doorbells");
	if (*how != "trapped" && *how != "polled")
		section.fail(place, "doorbells must be \"trapped\" or \"polled\"");
	if (*how == "polled" && host.bus != LabBus::vfio_user)
		section.fail(place, "doorbells can be \"polled\" only with the bus \"vfio-user\"");
	return *how == "polled";
}

const cards::Model &parse_model(LabSection &section)
{
	const auto name = section.text("model").value_or(kDefaultModel);
	const cards::Model *const model = cards::find_model(name);
	if (!model)
		section.fail(*section.find("model"),
			     fmt::format("there is no model '{}'; there is {}", name,
					 fmt::join(cards::model_names(), ", ")));
	return *model;
}

LabBoot parse_boot(LabSection &section)
{
	constexpr std::int64_t most_cpus = 64;
	LabBoot boot;
	boot.kernel = section.text("kernel");
	boot.stack = section.text("stack");
	if (boot.stack && *boot.stack != "linux" && *boot.stack != "weft")
		section.fail(*section.find("stack"), "stack must be \"linux\" or \"weft\"");
	boot.modules = section.text("modules");
	boot.initrd = section.text("initrd");
	boot.share = section.text("share");
	boot.append = section.text("append");
	boot.memory = section.text("memory");
	boot.cpus = section.integer("cpus", 1, most_cpus);
	section.finish();
	return boot;
}

// Parses `ethernet` of a host: a name, or a table with a name and link settings.
LabAttachment parse_attachment(LabSection &section, const std::string &host)
{
	LabAttachment attachment;
	attachment.host = host;
	const toml::node &node = *section.find("ethernet");
	if (!node.is_table()) {
		attachment.network = section.text("ethernet").value_or("");
		return attachment;
	}
	LabSection table = *section.section("ethernet");
	attachment.network = table.name("network");
	for (const auto name : ethernet_setting_names())
		if (const toml::node *value = table.find(name)) {
			try {
				apply_ethernet_setting(attachment.link, name, scalar_text(*value));
			} catch (const std::invalid_argument &reason) {
				table.fail(*value, reason.what());
			}
		}
	table.finish();
	return attachment;
}

// Returns true if a host's socket may have this name; some names are weftd's own.
bool is_file_name(const std::string &name)
{
	constexpr std::array<std::string_view, 9> taken{
		".",         "..",         "attach.sock", "control.sock", "lab.sock",
		"time.sock", "weftd.lock", "lids",        "lids-standby"};
	return !name.empty() && name.find('/') == std::string::npos &&
	       name.find('\0') == std::string::npos &&
	       std::ranges::find(taken, name) == taken.end();
}

// Parses a host's settings for its guest, and for the guest's connection to the card.
void parse_machine(LabSection &section, LabHost &host, Lab &lab)
{
	host.bus = parse_bus(section, lab.bus);
	if (host.model->polls_doorbells)
		host.polled_doorbells = parse_doorbells(section, host, lab);
	host.socket = section.text("socket").value_or(host.name + ".sock");
	if (!is_file_name(host.socket))
		section.fail("socket must be a file name: it is made in the socket directory");
	if (auto boot = section.section("boot"))
		host.boot = parse_boot(*boot);
	if (const toml::node *place = section.find("ethernet")) {
		lab.attachments.push_back(parse_attachment(section, host.name));
		if (std::ranges::find(lab.ethernets, lab.attachments.back().network,
				      &LabEthernet::name) == lab.ethernets.end())
			section.fail(*place, fmt::format("there is no [[ethernet]] '{}'",
							 lab.attachments.back().network));
		if (std::ranges::count(lab.attachments, lab.attachments.back().network,
				       &LabAttachment::network) > ethernet::Switch::kMostPorts)
			section.fail(*place, fmt::format("Ethernet '{}' has only {} ports",
							 lab.attachments.back().network,
							 ethernet::Switch::kMostPorts));
	}
}

LabHost parse_host(LabSection &section, GuidChoice &guids, std::size_t index, Lab &lab)
{
	// Top byte of service IDs that are reserved for communication managers (default_guids.hpp).
	constexpr unsigned assigned_service_id = 0x02;

	LabHost host;
	host.name = section.name("name");
	const cards::Model &model = parse_model(section);
	host.model = &model;
	host.ports = static_cast<unsigned>(
		section.integer("ports", model.least_ports, model.most_ports)
			.value_or(std::clamp(1u, model.least_ports, model.most_ports)));
	// The GUIDs of a card's ports are those that follow its own.
	host.guid = section.guid("guid", guids.host(host.name, index));
	if (host.guid > std::numeric_limits<ib::Guid>::max() - host.ports)
		section.fail("guid must leave space for the ports' GUIDs");
	if (host.guid >> 56 == assigned_service_id)
		lab.warnings.push_back(
			fmt::format("{}: guid {:#018x} begins with 0x02: communication "
				    "managers refuse software "
				    "that listens on it, as SRP targets do",
				    section.where("guid"), host.guid));
	for (const auto flag : model.flags)
		if (section.flag(flag).value_or(false))
			host.flags.emplace(flag);
	host.trusted = section.flag("trusted").value_or(true);
	if (model.pluggable)
		parse_machine(section, host, lab);
	section.finish();
	return host;
}

// Positions of the sections of nodes, for errors that are detected later; in the order of the lab's
// nodes.
struct Places {
	std::vector<std::string> switches;
	std::vector<std::string> hosts;
	std::vector<std::string> ethernets;
	std::string sm;
};

// Checks that no name, socket or GUID is used twice.
void check_unique(const Lab &lab, const Places &places)
{
	std::set<std::string> names;
	std::set<ib::Guid> guids;
	std::set<std::string> sockets;
	const auto claim = [&](const std::string &where, auto &set, const auto &value,
			       const std::string &what) {
		if (!set.insert(value).second)
			throw LabError(fmt::format("{}: {} is given twice", where, what));
	};
	if (lab.sm_enabled) {
		names.insert(kSmNode);
		guids.insert({lab.sm.guid, lab.sm.guid + 1});
	}
	if (!lab.sm_standby.empty()) {
		const auto guid = lab.standby().guid;
		names.insert(kStandbyNode);
		guids.insert({guid, guid + 1});
	}
	for (std::size_t i = 0; i < lab.switches.size(); ++i) {
		const auto &config = lab.switches[i];
		const std::string &where = places.switches[i];
		claim(where, names, config.name, fmt::format("the name '{}'", config.name));
		claim(where, guids, config.guid, fmt::format("the GUID {:#018x}", config.guid));
	}
	for (std::size_t i = 0; i < lab.hosts.size(); ++i) {
		const auto &host = lab.hosts[i];
		const std::string &where = places.hosts[i];
		claim(where, names, host.name, fmt::format("the name '{}'", host.name));
		if (host.model->pluggable)
			claim(where, sockets, host.socket,
			      fmt::format("the socket '{}'", host.socket));
		for (unsigned port = 0; port <= host.ports; ++port)
			claim(where, guids, host.guid + port,
			      fmt::format("the GUID {:#018x}", host.guid + port));
		for (const LabAttachment &attachment : lab.attachments)
			if (attachment.host == host.name)
				claim(where, sockets, attachment.socket(),
				      fmt::format("the socket '{}'", attachment.socket()));
	}
	for (const LabTrunk &trunk : lab.trunks)
		claim(trunk.where, names, trunk.name, fmt::format("the name '{}'", trunk.name));
	for (std::size_t i = 0; i < lab.ethernets.size(); ++i)
		claim(places.ethernets[i], names, lab.ethernets[i].name,
		      fmt::format("the name '{}'", lab.ethernets[i].name));
}

} // namespace

std::string LabLink::name() const
{
	return fmt::format("{}/{}-{}/{}", ends[0].node, ends[0].port, ends[1].node, ends[1].port);
}

Lab parse_lab(std::string_view text, const std::string &source, const std::string &default_name,
	      const Lab *running, const LabDefaults &defaults)
{
	toml::table table;
	try {
		table = toml::parse(text, source);
	} catch (const toml::parse_error &error) {
		throw LabError(
			fmt::format("{}: {}", place(source, error.source()), error.description()));
	}

	Lab lab;
	lab.bus = running ? running->bus : defaults.bus;
	lab.polled_doorbells = running ? running->polled_doorbells : defaults.polled_doorbells;
	Places places;
	LabSection root(table, source);
	places.sm = root.where();
	const auto seed = root.word("seed");
	lab.seed = running ? running->seed : seed.value_or(lab.seed);
	if (seed && *seed != lab.seed)
		lab.warnings.push_back(
			fmt::format("{}: the new seed takes effect at the next start of weftd",
				    root.where("seed")));
	lab.name = root.text("name").value_or(default_name);
	const DefaultGuids default_guids(lab.name);
	lab.sm.guid = running ? running->sm.guid : default_guids.subnet_manager();
	if (running)
		lab.sm.lids = running->sm.lids;
	GuidChoice guids(default_guids, running);
	const auto homes = std::make_shared<LabPlaces>();
	homes->where = root.where();
	for (LabSection &section : root.sections("place"))
		homes->places.push_back(parse_place(section, homes->places));
	lab.places = homes;
	lab.trunk_key_file = root.text("trunk-key-file").value_or("");
	for (LabSection &section : root.sections("switch")) {
		places.switches.push_back(section.where());
		const auto home = parse_home(section, *homes);
		lab.switches.push_back(parse_switch(section, guids, lab.switches.size()));
		homes->nodes[lab.switches.back().name] = home;
	}
	for (LabSection &section : root.sections("ethernet")) {
		places.ethernets.push_back(section.where());
		lab.ethernets.push_back({section.name("name")});
		section.finish();
	}
	for (LabSection &section : root.sections("host")) {
		places.hosts.push_back(section.where());
		const auto home = parse_home(section, *homes);
		lab.hosts.push_back(parse_host(section, guids, lab.hosts.size(), lab));
		homes->nodes[lab.hosts.back().name] = home;
	}
	for (const LabHost &host : lab.hosts)
		for (unsigned port = 1; !host.trusted && port <= host.ports; ++port)
			lab.sm.untrusted.insert(host.guid + port);
	for (LabSection &section : root.sections("link"))
		lab.links.push_back(parse_link(section));
	for (LabSection &section : root.sections("trunk"))
		parse_trunk(section, lab);
	if (auto section = root.section("sm")) {
		places.sm = section->where();
		homes->manager = parse_home(*section, *homes);
		parse_sm(*section, lab);
	}
	root.finish();
	check_unique(lab, places);
	assign_ports(lab, places.sm, running, manager_switches(lab));
	number_hosts(lab, running);
	number_links(lab, running);
	number_attachments(lab, running);
	lab.expected_ports = expected_ports(lab);
	return lab;
}

LabText read_lab_text(const std::filesystem::path &file)
{
	std::ifstream stream(file);
	if (!stream)
		throw LabError(file.string() + ": cannot be read");
	return {file.string(), std::filesystem::absolute(file).parent_path().string(),
		std::string((std::istreambuf_iterator<char>(stream)), {})};
}

Lab load_lab(const std::filesystem::path &file, const std::string &default_name)
{
	const LabText read = read_lab_text(file);
	Lab lab = parse_lab(read.text, read.source, default_name);
	resolve_paths(lab, read.folder);
	return lab;
}

void resolve_paths(Lab &lab, const std::filesystem::path &folder)
{
	for (LabHost &host : lab.hosts) {
		LabBoot &boot = host.boot;
		for (auto *path : {&boot.modules, &boot.initrd, &boot.share})
			if (*path)
				*path = (folder / **path).lexically_normal().string();
		// A name without a slash is the name of a kernel, not a path.
		if (boot.kernel && boot.kernel->find('/') != std::string::npos)
			boot.kernel = (folder / *boot.kernel).lexically_normal().string();
	}
	for (LabTrunk &trunk : lab.trunks)
		trunk.key_file = (folder / trunk.key_file).lexically_normal().string();
	if (!lab.trunk_key_file.empty())
		lab.trunk_key_file = (folder / lab.trunk_key_file).lexically_normal().string();
}

Lab default_lab(const std::string &name, const LabDefaults &defaults)
{
	return parse_lab(kDefaultLab, "the default lab", name, nullptr, defaults);
}

std::string_view text_of(LabBus bus)
{
	return bus == LabBus::vfio_user ? "vfio-user" : "vhost-user";
}

} // namespace weft::weftd
