// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Executes the requests of one client of the control socket.
#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "net/fabric/capture.hpp"
#include "net/fabric/switch.hpp"
#include "sm/subnet_manager.hpp"
#include "weftd/control.hpp"
#include "weftd/ethernet_control.hpp"
#include "weftd/fabric_view.hpp"
#include "weftd/guid_text.hpp"
#include "weftd/lab_part.hpp"
#include "weftd/link_settings.hpp"
#include "weftd/log.hpp"
#include "weftd/observation.hpp"
#include "weftd/state_file.hpp"
#include "weftd/subnet_view.hpp"
#include "weftd/lab_runtime.hpp"

namespace weft::weftd
{

using nlohmann::json;

namespace
{

// An invalid request of a client; its text is the answer.
struct BadRequest : std::runtime_error {
	using std::runtime_error::runtime_error;
};

std::string text_of(const json &request, const char *key)
{
	const auto found = request.find(key);
	if (found == request.end() || !found->is_string())
		throw BadRequest(fmt::format("'{}' must be given, as a string", key));
	return found->get<std::string>();
}

json set_attachment(LabRuntime &runtime, const ethernet::AttachmentState &attachment,
		    const ethernet::LinkSettings &settings)
{
	runtime.ethernet().set_link(attachment.name, settings);
	ethernet::LinkState link = attachment.link;
	link.settings = settings;
	return describe_ethernet_link(link);
}

json set_link_state(LabRuntime &runtime, const json &request, bool up)
{
	if (const auto attachment = runtime.find_attachment(text_of(request, "link"))) {
		spdlog::info("link {}: {}", attachment->link.name, up ? "plugged in" : "pulled");
		return set_attachment(runtime, *attachment, {up, attachment->link.settings.faults});
	}
	fabric::Link &link = runtime.find_link(text_of(request, "link"));
	link.set_plugged(up);
	spdlog::info("link {}: {}", link.name(), up ? "plugged in" : "pulled");
	return describe(link);
}

// Changes settings of a link. Checks all settings before it applies the first one.
json set_link(LabRuntime &runtime, const json &request)
{
	const auto settings = request.find("settings");
	if (settings == request.end() || !settings->is_object() || settings->empty())
		throw BadRequest("'settings' must be an object, as in {\"loss\": \"0.01\"}");
	if (const auto attachment = runtime.find_attachment(text_of(request, "link"))) {
		auto wanted = attachment->link.settings;
		for (const auto &[name, value] : settings->items())
			apply_ethernet_setting(wanted, name,
					       value.is_string() ? value.get<std::string>()
								 : value.dump());
		spdlog::info("link {}: set {}", attachment->link.name, settings->dump());
		return set_attachment(runtime, *attachment, wanted);
	}
	fabric::Link &link = runtime.find_link(text_of(request, "link"));
	if (settings->contains("delay") && runtime.is_timed(link))
		throw BadRequest(
			fmt::format("the delay of {}, which connects two places, cannot be "
				    "changed in virtual time",
				    link.name()));
	auto config = config_of(link);
	for (const auto &[name, value] : settings->items())
		apply_link_setting(config, name,
				   value.is_string() ? value.get<std::string>() : value.dump());
	change_link(link, config);
	spdlog::info("link {}: set {}", link.name(), settings->dump());
	return describe(link);
}

// Returns the names of the ports at both ends of a link, or nothing if no link has this name.
std::vector<std::string> ends_of_link(LabRuntime &runtime, const std::string &name)
{
	if (const fabric::Link *link = runtime.fabric().find_link(name))
		return {link->end(0).name(), link->end(1).name()};
	for (const auto &attachment : runtime.ethernet().state().attachments)
		if (attachment.link.name == name)
			return {attachment.link.ends[0].name, attachment.link.ends[1].name};
	return {};
}

// Returns the counters of all linked ports, or of those that "port" selects: one port, the ports of
// a node, or those at the ends of a link.
json counters(LabRuntime &runtime, const json &request)
{
	const bool all = !request.contains("port");
	const std::string wanted = all ? std::string() : text_of(request, "port");
	const std::vector<std::string> ends =
		all ? std::vector<std::string>() : ends_of_link(runtime, wanted);
	const auto is_wanted = [&](std::string_view name) {
		return name == wanted || name.starts_with(wanted + "/") ||
		       std::ranges::find(ends, name) != ends.end();
	};
	json result = json::object();
	for (const fabric::Port *port : all_ports(runtime))
		if (all ? port->link() != nullptr : is_wanted(port->name()))
			result[port->name()] = counters_of(*port);
	const json of_ethernets = ethernet_counters(runtime.ethernet().state());
	for (const auto &[name, values] : of_ethernets.items())
		if (all || is_wanted(name))
			result[name] = values;
	if (!all && result.empty())
		throw BadRequest(fmt::format("there is no port, node or link '{}'", wanted));
	return result;
}

json card_counters(LabRuntime &runtime, const json &)
{
	json result = json::object();
	for (const auto &host : runtime.hosts())
		result[host->name] = counts_of(host->card->activity());
	return result;
}

Host &host_of(LabRuntime &runtime, const json &request)
{
	const auto name = text_of(request, "host");
	for (const auto &host : runtime.hosts())
		if (host->name == name)
			return *host;
	throw BadRequest(fmt::format("there is no host '{}'", name));
}

std::uint64_t number_of(const json &request, const char *key, std::uint64_t otherwise,
			std::uint64_t limit)
{
	const auto found = request.find(key);
	if (found == request.end())
		return otherwise;
	if (!found->is_number_unsigned() || found->get<std::uint64_t>() > limit)
		throw BadRequest(fmt::format("'{}' must be a number of at most {}", key, limit));
	return found->get<std::uint64_t>();
}

json break_card(LabRuntime &runtime, const json &request)
{
	Host &host = host_of(runtime, request);
	const auto fault = text_of(request, "fault");
	const auto count = static_cast<std::uint32_t>(number_of(request, "count", 1, 0xffffffff));
	if (!host.card->arm_fault(fault, count)) {
		std::vector<std::string_view> names;
		for (const cards::Count &kind : host.card->faults())
			names.push_back(kind.name);
		if (names.empty())
			throw BadRequest(
				fmt::format("the card of {} has no faults to inject", host.name));
		throw BadRequest(fmt::format("there is no fault '{}'; there are {}", fault,
					     fmt::join(names, ", ")));
	}
	spdlog::info("{}: {} fault, {} times, by request", host.name, fault, count);
	return counts_of(host.card->faults());
}

json break_card_at_random(LabRuntime &runtime, const json &request)
{
	Host &host = host_of(runtime, request);
	const auto seed = number_of(request, "seed", 1, ~std::uint64_t{0});
	const auto one_in =
		static_cast<std::uint32_t>(number_of(request, "one_in", 1000, 0xffffffff));
	if (!host.card->randomise_faults(seed, one_in))
		throw BadRequest(fmt::format("{}'s card has no random faults", host.name));
	spdlog::info("{}: faults at random, one in {}, seed {:#x}", host.name, one_in, seed);
	return counts_of(host.card->faults());
}

sm::SubnetManager &manager_of(LabRuntime &runtime)
{
	if (!runtime.subnet_manager())
		throw BadRequest("this lab has no subnet manager");
	return *runtime.subnet_manager();
}

// Returns the GUID of a node of another place, or nothing if the request has none.
std::optional<ib::Guid> guid_in(const json &request)
{
	if (!request.contains("guid"))
		return std::nullopt;
	const auto text = text_of(request, "guid");
	std::uint64_t guid = 0;
	const char *const begin = text.data() + (text.starts_with("0x") ? 2 : 0);
	const auto parsed = std::from_chars(begin, text.data() + text.size(), guid, 16);
	if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
		throw BadRequest("'guid' must be a GUID, as in fabric.show");
	return ib::Guid{guid};
}

json sweep(LabRuntime &runtime, const json &)
{
	auto &manager = manager_of(runtime);
	manager.request_sweep();
	return state_of_manager(runtime);
}

json renumber(LabRuntime &runtime, const json &)
{
	auto &manager = manager_of(runtime);
	manager.request_renumbering();
	return state_of_manager(runtime);
}

json corrupt_replies(LabRuntime &runtime, const json &request)
{
	auto &reply_corrupter = manager_of(runtime).reply_corrupter();
	const auto seed = number_of(request, "seed", 1, ~std::uint64_t{0});
	const auto one_in = static_cast<std::uint32_t>(number_of(request, "one_in", 1, 0xffffffff));
	reply_corrupter.randomise(seed, one_in);
	spdlog::info("subnet administration: corrupt replies, one in {}, seed {:#x}", one_in, seed);
	return {{"corrupted", reply_corrupter.corrupted()}};
}

json apply_lab(LabRuntime &runtime, const json &request)
{
	const auto dry_run = request.value("dry_run", false);
	const std::filesystem::path folder = text_of(request, "folder");
	if (!folder.is_absolute())
		throw BadRequest("'folder' must be an absolute path");
	const Lab running = runtime.lab();
	const Lab wanted = parse_changed_lab(
		{text_of(request, "source"), folder.string(), text_of(request, "text")}, running);
	const LabDifference changes = dry_run ? runtime.compare(wanted) : runtime.apply(wanted);
	return {{"changes", changes.lines},
		{"warnings", wanted.warnings},
		{"replaced", changes.replaced_hosts()},
		{"applied", !dry_run}};
}

json read_log(const LabRuntime &runtime, LogHistory *log, const json &request)
{
	if (!log)
		throw BadRequest("this weftd keeps no log");
	const auto after = number_of(request, "after", 0, ~std::uint64_t{0});
	const auto part = request.contains("part") ? text_of(request, "part") : std::string();
	// The log may still contain lines of a host that was removed.
	if (!part.empty() && !is_part(part) &&
	    std::ranges::none_of(runtime.hosts(),
				 [&](const auto &host) { return host->name == part; }) &&
	    log->after(0, part).empty())
		throw BadRequest(fmt::format("the log has no part '{}'; its parts are sm, link, "
					     "trunk, switch, fabric, control, weftd, and the hosts",
					     part));
	// The last number is read first. A line that is added meanwhile is then reported twice, and
	// none is lost.
	json result{{"last", log->last()}, {"lines", json::array()}};
	for (const auto &line : log->after(after, part)) {
		const auto level = spdlog::level::to_string_view(line.level);
		result["lines"].push_back({{"number", line.number},
					   {"time", utc_text(line.time)},
					   {"level", std::string(level.data(), level.size())},
					   {"part", line.part},
					   {"text", line.text}});
	}
	return result;
}

json enable_manager(LabRuntime &runtime, bool enable)
{
	manager_of(runtime); // throws an exception if there is none
	// Otherwise, the one on standby would take over from one that is disabled.
	for (const auto &each : runtime.subnet_managers())
		each.manager->set_enabled(enable);
	spdlog::info("subnet manager {}", enable ? "enabled" : "disabled");
	// The subnet manager's state changes later, so it is not in the reply.
	return {{"node", kSmNode}, {"enabled", enable}};
}

} // namespace

struct ControlSession::Captures {
	// Keyed by link; several links may be recorded to one file.
	std::map<fabric::Link *, std::shared_ptr<fabric::Capture>> running;
	EthernetCaptures ethernet;

	explicit Captures(LabRuntime &runtime) : ethernet(runtime.ethernet()) {}

	void stop(fabric::Link *link)
	{
		const auto found = running.find(link);
		if (found == running.end())
			return;
		// Another client may have started a capture on this link since.
		if (link->capture() == found->second)
			link->set_capture(nullptr);
		found->second->flush();
		running.erase(found);
	}

	json start(LabRuntime &runtime, const json &request)
	{
		const std::filesystem::path file = text_of(request, "file");
		if (!file.is_absolute())
			throw BadRequest("'file' must be an absolute path");
		const auto most_bytes =
			number_of(request, "most_bytes", fabric::Capture::kUnlimited,
				  fabric::Capture::kUnlimited);
		const bool at_once = request.value("at_once", false);
		const auto name = text_of(request, "link");
		if (const auto attachments = ethernet.find(name); !attachments.empty()) {
			ethernet.start(attachments, file, most_bytes, at_once);
			json names = json::array();
			for (const auto &attachment : attachments)
				names.push_back(attachment.link.name);
			spdlog::info("capture of {} into {}", names.dump(), file.string());
			return {{"links", names}};
		}
		std::vector<fabric::Link *> links;
		if (name == "all")
			links = runtime.fabric().links();
		else
			links.push_back(&runtime.find_link(name));
		for (const fabric::Link *link : links)
			if (link->capture())
				throw BadRequest(
					fmt::format("link {} is captured already", link->name()));
		const auto capture = std::make_shared<fabric::Capture>(file.string(), most_bytes,
								       runtime.environment());
		if (at_once)
			capture->write_at_once();
		json names = json::array();
		for (fabric::Link *link : links) {
			link->set_capture(capture);
			running[link] = capture;
			names.push_back(link->name());
		}
		spdlog::info("capture of {} into {}", names.dump(), file.string());
		return {{"links", names}};
	}

	// Writes all packets to the file, and returns their number.
	json progress() const
	{
		std::uint64_t packets = ethernet.flush();
		bool full = ethernet.full();
		std::vector<const fabric::Capture *> counted;
		for (const auto &[link, capture] : running) {
			if (std::ranges::find(counted, capture.get()) != counted.end())
				continue;
			counted.push_back(capture.get());
			capture->flush();
			packets += capture->packets();
			full |= capture->full();
		}
		return {{"packets", packets}, {"full", full}};
	}

	json stop_all()
	{
		const json result = progress();
		while (!running.empty())
			stop(running.begin()->first);
		ethernet.stop();
		return result;
	}
};

namespace
{

// Maximum nesting of a request. The JSON library needs a stack frame per level to copy and write a
// value, and a line has space for tens of thousands of levels.
constexpr int kMostLevels = 8;

// Returns a value that is not an object if @line is not valid JSON or has too many levels.
json parse_request(std::string_view line)
{
	bool too_deep = false;
	json request = json::parse(
		line,
		[&](int depth, json::parse_event_t, json &) {
			too_deep |= depth > kMostLevels;
			return !too_deep;
		},
		false);
	return too_deep ? json() : request;
}

} // namespace

void record_armed_faults(const LabRuntime &runtime, StateFile &state)
{
	std::vector<ArmedFault> armed;
	for (const auto &host : runtime.hosts())
		for (const cards::Count &fault : host->card->armed())
			armed.push_back({host->name, std::string(fault.name), fault.value});
	state.record_armed(std::move(armed));
}

ControlSession::ControlSession(LabRuntime &runtime, std::function<void()> shut_down,
			       std::shared_ptr<LogHistory> log, std::shared_ptr<StateFile> state,
			       std::shared_ptr<Sampler> sampler)
    : runtime_(runtime), shut_down_(std::move(shut_down)), log_(std::move(log)),
      state_(std::move(state)),
      sampler_(sampler ? std::move(sampler) : std::make_shared<Sampler>(runtime)),
      captures_(std::make_unique<Captures>(runtime))
{
}

ControlSession::~ControlSession()
{
	captures_->stop_all();
}

std::string ControlSession::handle(std::string_view line)
{
	begin(line);
	for (;;)
		if (auto answer = go_on())
			return std::move(*answer);
}

std::optional<std::string> ControlSession::go_on()
{
	if (!view_)
		return std::exchange(answer_, {});
	std::string members;
	try {
		auto shown = view_->step();
		if (!shown)
			return std::nullopt;
		members = "\"ok\":true,\"result\":" + *shown + '}';
	} catch (const std::exception &reason) {
		members = json_text({{"ok", false}, {"error", reason.what()}}).substr(1);
	}
	view_.reset();
	return std::exchange(answer_, {}) + members;
}

void ControlSession::begin(std::string_view line)
{
	using Command = std::function<json(const json &)>;
	const std::map<std::string, Command> commands{
		{"fabric.sample",
		 [&](const json &r) {
			 return sampler_->sample(number_of(r, "since", 0, ~std::uint64_t{0}),
						 r.value("cards", false));
		 }},
		{"fabric.subnet",
		 [&](const json &r) {
			 return describe_subnet_node(runtime_, text_of(r, "node"), guid_in(r));
		 }},
		{"link.up", [&](const json &r) { return set_link_state(runtime_, r, true); }},
		{"link.down", [&](const json &r) { return set_link_state(runtime_, r, false); }},
		{"link.set", [&](const json &r) { return set_link(runtime_, r); }},
		{"counters", [&](const json &r) { return counters(runtime_, r); }},
		{"counters.cards", [&](const json &r) { return card_counters(runtime_, r); }},
		{"card.fault", [&](const json &r) { return break_card(runtime_, r); }},
		{"card.random_faults",
		 [&](const json &r) { return break_card_at_random(runtime_, r); }},
		{"capture.start", [&](const json &r) { return captures_->start(runtime_, r); }},
		{"capture.progress", [&](const json &) { return captures_->progress(); }},
		{"capture.stop", [&](const json &) { return captures_->stop_all(); }},
		{"lab.apply", [&](const json &r) { return apply_lab(runtime_, r); }},
		{"sm.sweep", [&](const json &r) { return sweep(runtime_, r); }},
		{"sm.renumber", [&](const json &r) { return renumber(runtime_, r); }},
		{"sm.corrupt-replies", [&](const json &r) { return corrupt_replies(runtime_, r); }},
		{"sm.enable", [&](const json &) { return enable_manager(runtime_, true); }},
		{"sm.disable", [&](const json &) { return enable_manager(runtime_, false); }},
		{"log", [&](const json &r) { return read_log(runtime_, log_.get(), r); }},
		{"shutdown",
		 [&](const json &) {
			 shut_down_();
			 return json::object();
		 }},
	};

	json answer{{"ok", false}};
	try {
		const json request = parse_request(line);
		if (!request.is_object())
			throw BadRequest("a request is a JSON object on a line of its own");
		if (const auto id = request.find("id"); id != request.end())
			answer["id"] = *id;
		const auto name = text_of(request, "command");
		if (name == "fabric.show") {
			view_ = std::make_unique<FabricView>(runtime_,
							     request.value("lids", false));
			// The other members of the answer follow.
			answer_ = "{";
			if (answer.contains("id"))
				answer_ += "\"id\":" + json_text(answer["id"]) + ',';
			return;
		}
		const auto command = commands.find(name);
		if (command == commands.end())
			throw BadRequest(fmt::format("there is no command '{}'", name));
		const bool recorded = request.value("record", true);
		answer["result"] = command->second(request);
		// Record the request before the client is answered, so that every confirmed change
		// can be restored.
		if (state_ && recorded)
			state_->record(request, answer["result"]);
		// A lab file may have replaced cards.
		if (state_ && (name == "card.fault" || name == "lab.apply"))
			record_armed_faults(runtime_, *state_);
		answer["ok"] = true;
	} catch (const std::exception &reason) {
		answer["error"] = reason.what();
	}
	answer_ = json_text(answer);
}

} // namespace weft::weftd
