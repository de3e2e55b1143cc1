// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains the main function of weftd, the daemon that runs a lab's fabric, cards and subnet
// manager. See weftd(1).
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/descriptor_limit.hpp"
#include "base/file_descriptor.hpp"
#include "base/loop.hpp"
#include "base/runtime_directory.hpp"
#include "base/usage.hpp"
#include "virtual_time/scheduler.hpp"
#include "virtual_time/shared_time.hpp"
#include "weftd/scripted_events.hpp"
#include "weftd/service_manager.hpp"
#include "weftd/state_file.hpp"
#include "weftd/control.hpp"
#include "weftd/keeper_socket.hpp"
#include "weftd/lab.hpp"
#include "weftd/lab_part.hpp"
#include "weftd/log.hpp"
#include "weftd/lab_runtime.hpp"
#include "weftd/plan_text.hpp"
#include "weftd/timed_places.hpp"

namespace
{

using namespace weft;

struct Options {
	std::filesystem::path lab;
	std::filesystem::path socket_directory = default_socket_directory();
	bool group = false;
	std::filesystem::path state_directory;
	std::filesystem::path state;
	int keeper = -1;
	std::string log_level = "info";
	weftd::LogForm log_form = weftd::LogForm::text;
	std::optional<std::uint64_t> seed;
	bool time_server = false;
	weftd::LabDefaults defaults;
	std::filesystem::path events;
	std::filesystem::path finished_file;
	bool check = false;
	std::string plan;
	std::vector<std::string> places;
	std::size_t number_of_places = 0;
	std::vector<std::string> peers;
	std::filesystem::path trunk_key;
};

// Options for a lab that several weftds run together.
void add_place_options(CLI::App &app, Options &options)
{
	app.add_option("--place", options.places,
		       "run only this place of the lab file, see weft-lab.toml(5); with "
		       "--time-server, may be given again")
		->type_name("NAME")
		->take_all()
		->allow_extra_args(false);
	app.add_option("--places", options.number_of_places,
		       "for a lab file without places: their number; they are p1, p2 and so on")
		->type_name("N")
		->check(usage::integer(1, weftd::kMostPlaces));
	app.add_option(
		   "--peer", options.peers,
		   "the address of a place, instead of that in the lab file; may be given again")
		->type_name("NAME=HOST:PORT")
		->take_all()
		->allow_extra_args(false);
	app.add_option("--trunk-key", options.trunk_key,
		       "the key file for trunks between places, instead of the lab file's")
		->type_name("FILE");
	app.add_option("--plan", options.plan,
		       "print the nodes and trunks of each place, as text or json, and exit")
		->check(usage::one_of({"text", "json"}));
}

Options parse(int argc, char **argv)
{
	CLI::App app("Emulated InfiniBand cards on a virtual fabric, for QEMU by vfio-user.",
		     "weftd");
	app.formatter(usage::formatter());
	app.set_version_flag("--version", "weftd " WEFT_VERSION);
	app.footer("Without --lab: one switch, hosts node1 and node2, a subnet manager.\n"
		   "Give QEMU the card of node1:\n"
		   "  -device '{\"driver\":\"vfio-user-pci\",\"socket\":"
		   "{\"type\":\"unix\",\"path\":\"DIR/node1.sock\"}}'\n"
		   "See weftd(1). `weft fabric show` shows the running lab.");
	Options options;
	app.add_option("--lab", options.lab, "the lab file, see weft-lab.toml(5)")
		->type_name("FILE")
		->check(CLI::ExistingFile);
	app.add_option("--socket-dir", options.socket_directory,
		       "the directory for control.sock and the cards' sockets")
		->type_name("DIR")
		->capture_default_str();
	app.add_flag("--group", options.group,
		     "let the directory's group use the sockets of cards and networks");
	app.add_option("--state-dir", options.state_directory,
		       "the directory for LIDs (default: the socket directory)")
		->type_name("DIR");
	auto *state = app.add_option(
		"--state", options.state,
		"a file that records changes; if it is there, its lab is continued, see weftd(1)");
	state->type_name("FILE");
	auto *keeper = app.add_option(
		"--keeper", options.keeper,
		"the descriptor of a socket to a program that keeps QEMU's connections, see weftd(1)");
	app.add_option("--seed", options.seed,
		       "seed of all random choices, instead of the lab file's")
		->type_name("N")
		->check(usage::integer(0, UINT64_MAX));
	app.add_option_function<std::string>(
		   "--bus",
		   [&options](const std::string &name) {
			   for (const auto bus :
				{weftd::LabBus::vfio_user, weftd::LabBus::vhost_user})
				   if (name == text_of(bus))
					   options.defaults.bus = bus;
		   },
		   "the bus of hosts without a bus in the lab file (default: vfio-user)")
		->check(usage::one_of({"vfio-user", "vhost-user"}));
	app.add_option_function<std::string>(
		   "--doorbells",
		   [&options](const std::string &name) {
			   options.defaults.polled_doorbells = name == "polled";
		   },
		   "how mlx5 hosts without doorbells in the lab file receive doorbells, see "
		   "weft-lab.toml(5) (default: trapped)")
		->check(usage::one_of({"trapped", "polled"}));
	auto *time_server = app.add_flag(
		"--time-server", options.time_server,
		"run in virtual time, with User-Mode Linux guests that connect to time.sock");
	state->excludes(time_server);
	keeper->excludes(time_server)->type_name("FD")->check(usage::integer(0, INT_MAX));
	// A restarted daemon would execute the events again.
	app.add_option("--events", options.events, "scheduled requests, see weftd(1)")
		->type_name("FILE")
		->check(CLI::ExistingFile)
		->excludes(state);
	app.add_option("--finished-file", options.finished_file,
		       "a file that a guest creates when the lab has finished, see weftd(1)")
		->type_name("FILE")
		->needs(time_server);
	app.add_option("--log-level", options.log_level,
		       "the lowest level of lines that are printed")
		->check(usage::one_of({"trace", "debug", "info", "warning", "error"}))
		->capture_default_str();
	app.add_option_function<std::string>(
		   "--log-format",
		   [&options](const std::string &name) {
			   options.log_form = name == "json" ? weftd::LogForm::json_lines
							     : weftd::LogForm::text;
		   },
		   "text (the default), or json: one object per line")
		->check(usage::one_of({"text", "json"}));
	app.add_flag("--check", options.check, "check the lab file and exit")->excludes(state);
	add_place_options(app, options);
	try {
		app.parse(argc, argv);
		if (options.places.size() > 1 && options.plan.empty() && !options.time_server)
			throw CLI::ValidationError("--place", "a weftd runs only one place");
		if (options.time_server && (!options.peers.empty() || !options.trunk_key.empty()))
			throw CLI::ValidationError(
				"--time-server",
				"excludes --peer and --trunk-key, because places in virtual time "
				"have no addresses");
		if (options.places.empty() && options.plan.empty() &&
		    (options.number_of_places || !options.peers.empty() ||
		     !options.trunk_key.empty()))
			throw CLI::ValidationError(
				"--place",
				"is required by --places, --peer and --trunk-key, unless --plan is given");
	} catch (const CLI::ParseError &error) {
		std::exit(usage::report(app, error));
	}
	return options;
}

// Locks the directory for this process. The lock, unlike a file, is released however the process
// ends.
FileDescriptor claim(const std::filesystem::path &directory, bool with_group)
{
	const FileDescriptor opened = open_private_directory(directory, with_group);
	FileDescriptor lock(::openat(opened.get(), "weftd.lock",
				     O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
	if (!lock)
		throw std::system_error(errno, std::generic_category(),
					(directory / "weftd.lock").string());
	if (::flock(lock.get(), LOCK_EX | LOCK_NB))
		throw std::runtime_error("another weftd serves " + directory.string());
	return lock;
}

// Blocks the signals that stop the daemon. This must happen before threads are created, because
// they inherit the mask.
FileDescriptor take_signals()
{
	sigset_t ending;
	::sigemptyset(&ending);
	for (const int number : {SIGINT, SIGTERM, SIGHUP})
		::sigaddset(&ending, number);
	::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
	FileDescriptor signals(::signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
	if (!signals)
		throw std::system_error(errno, std::generic_category(), "signalfd");
	return signals;
}

// Returns the name of a lab without a name in its file, which is derived from the directory: no
// other daemon uses the same directory, and a restarted lab gets the same name.
std::string place_of_lab(const std::filesystem::path &directory)
{
	std::array<char, HOST_NAME_MAX + 1> host{};
	::gethostname(host.data(), host.size() - 1);
	return std::string(host.data()) + ":" + directory.string();
}

// Returns the file of the lab to start with: that of the lab which @state continues, or that of the
// options. Nothing for the default lab.
std::optional<weftd::LabText> choose_lab(const Options &options, const weftd::StateFile *state)
{
	if (state && state->continues())
		return state->lab();
	if (!options.lab.empty())
		return weftd::read_lab_text(options.lab);
	return std::nullopt;
}

weftd::Lab make_lab(const std::optional<weftd::LabText> &text, const std::string &name,
		    const weftd::LabDefaults &defaults)
{
	if (!text)
		return weftd::default_lab(name, defaults);
	auto lab = weftd::parse_lab(text->text, text->source, name, nullptr, defaults);
	weftd::resolve_paths(lab, text->folder);
	return lab;
}

// The time at which a card sees a polled doorbell depends on the host's scheduler.
void refuse_polling(const weftd::Lab &lab)
{
	for (const weftd::LabHost &host : lab.hosts)
		if (host.polled_doorbells)
			throw weftd::LabError(fmt::format(
				"host '{}' has doorbells = \"polled\", which --time-server does "
				"not permit: such a lab would not be deterministic",
				host.name));
}

weftd::PlanOptions plan_options(const Options &options)
{
	weftd::PlanOptions result;
	result.places = options.number_of_places;
	for (const std::string &peer : options.peers) {
		const auto equals = peer.find('=');
		if (equals == std::string::npos)
			throw std::invalid_argument("--peer: '" + peer +
						    "' is not of the form NAME=HOST:PORT");
		const auto name = peer.substr(0, equals);
		try {
			const auto address = trunk::Address::resolve(
				weftd::with_trunk_port(peer.substr(equals + 1)));
			if (!address.has_port())
				throw std::invalid_argument("the port must not be 0");
			result.peers.insert_or_assign(name, address);
		} catch (const std::invalid_argument &reason) {
			throw std::invalid_argument("--peer " + name + ": " + reason.what());
		}
	}
	return result;
}

void print_plan(const weftd::Lab &lab, const Options &options)
{
	const weftd::Plan plan = weftd::make_plan(lab, plan_options(options));
	const std::set<std::string> shown(options.places.begin(), options.places.end());
	std::cout << (options.plan == "json" ? weftd::describe(lab, plan, shown).dump(2) + '\n'
					     : weftd::plan_text(lab, plan, shown))
		  << std::flush;
}

// Repeats the changes to a lab that is continued.
void restore(weftd::LabRuntime &runtime, weftd::StateFile &state)
{
	state.count_restart();
	weftd::ControlSession session(runtime, [] {});
	for (const std::string &request : state.requests()) {
		const auto answer = nlohmann::json::parse(session.handle(request));
		if (!answer.at("ok").get<bool>())
			spdlog::warn("state: {} could not be repeated: {}", request,
				     answer.at("error").get<std::string>());
	}
}

int run(const Options &options, const std::shared_ptr<weftd::LogHistory> &log)
{
	const auto directory =
		std::filesystem::absolute(options.socket_directory).lexically_normal();
	// In virtual time, the GUIDs must not depend on the directory, so that runs are repeatable.
	// Places have different directories, so the GUIDs of a lab with places are derived from the
	// name in its file only.
	const bool has_places = !options.places.empty() || !options.plan.empty();
	const auto name = has_places            ? ""
			  : options.time_server ? "time server"
						: place_of_lab(directory);
	const auto state =
		options.state.empty() ? nullptr : std::make_shared<weftd::StateFile>(options.state);
	auto text = choose_lab(options, state.get());
	// A continued lab needs no lab file, because its state contains it.
	if (has_places && !text)
		throw std::invalid_argument("--place and --plan need --lab, or the --state of a "
					    "weftd with a lab file");
	auto lab = make_lab(text, name, options.defaults);
	if (options.time_server)
		refuse_polling(lab);
	lab.sm.lids = std::filesystem::absolute(options.state_directory.empty()
							? directory
							: options.state_directory) /
		      "lids";
	if (options.seed)
		lab.seed = *options.seed;
	if (!options.plan.empty()) {
		print_plan(lab, options);
		return 0;
	}
	const bool timed_places = has_places && options.time_server;
	const weftd::TimedPlaces timed{options.places, plan_options(options), directory,
				       options.events, options.finished_file};
	// Report errors of the lab with --check, too.
	if (timed_places) {
		const weftd::Plan plan = weftd::make_plan(lab, timed.plan);
		weftd::trunk_delays(lab, plan);
		for (const std::string &place : options.places)
			plan.find(place);
	} else if (has_places)
		lab = weftd::part_of(std::move(lab),
				     {options.places.front(), plan_options(options),
				      options.trunk_key.empty()
					      ? ""
					      : std::filesystem::absolute(options.trunk_key)
							.lexically_normal()
							.string()});
	for (const auto &warning : lab.warnings)
		spdlog::warn("{}", warning);
	if (options.check)
		return 0;

	std::signal(SIGPIPE, SIG_IGN);
	raise_descriptor_limit();
	if (timed_places) {
		const FileDescriptor signals = take_signals();
		std::vector<FileDescriptor> locks;
		for (const std::string &place : options.places)
			locks.push_back(claim(directory / place, options.group));
		return weftd::run_timed_places(lab, timed, std::move(locks), signals, log);
	}
	std::optional<virtual_time::SharedTime> time;
	if (options.time_server)
		time.emplace(lab.seed);
	Reactor reactor("weftd", Reactor::Drive::manual,
			time ? static_cast<Environment &>(*time) : Environment::host());
	Loop main_loop("weftd", reactor);
	bool ended = false;
	std::optional<virtual_time::Scheduler> scheduler;
	const FileDescriptor signals = take_signals();
	Watch on_signal(main_loop, signals.get(), Watch::kReadable, [&](unsigned) {
		signalfd_siginfo signal{};
		if (::read(signals.get(), &signal, sizeof(signal)) != sizeof(signal))
			return;
		spdlog::info("ends on {}", ::strsignal(static_cast<int>(signal.ssi_signo)));
		if (scheduler && !scheduler->awaited().empty())
			spdlog::info("waited for {}", scheduler->awaited());
		scheduler.reset(); // from now on, no guest's time slice is waited for
		ended = true;
	});

	const auto lock = claim(directory, options.group);
	if (state && !state->continues())
		state->begin(std::move(text));
	if (time) {
		lab.bus = weftd::LabBus::vhost_user;
		for (weftd::LabHost &host : lab.hosts)
			host.bus = lab.bus;
	}
	const auto keeper = options.keeper < 0
				    ? nullptr
				    : std::make_unique<weftd::KeeperSocket>(options.keeper);
	weftd::LabRuntime runtime(lab, directory, time ? &reactor : nullptr, keeper.get());
	if (state)
		restore(runtime, *state);
	auto scheduled = options.events.empty() ? std::vector<weftd::ScriptedEvent>{}
						: weftd::load_events(options.events);
	int status = EXIT_SUCCESS;
	const auto end = [&](bool failed, const std::string &reason) {
		spdlog::log(failed ? spdlog::level::err : spdlog::level::info, "ends: {}", reason);
		// Only the first reason is used, because the lab's time stops with it.
		if (!ended && failed)
			status = EXIT_FAILURE;
		ended = true;
	};
	if (time) {
		std::vector<std::string> names;
		for (const weftd::LabHost &host : lab.hosts)
			if (host.model->pluggable)
				names.push_back(host.name);
		// A guest that panics closes its connection like one that is powered off.
		scheduler.emplace(
			main_loop, *time, std::move(names), directory / "time.sock",
			[&](const std::string &reason) {
				std::error_code none;
				end(options.finished_file.empty() ||
					    !std::filesystem::exists(options.finished_file, none),
				    reason);
			});
	}
	std::optional<Loop> control_loop;
	if (time)
		control_loop.emplace("control", reactor);
	else
		control_loop.emplace("control");
	// Created last, because its socket means that everything else exists.
	weftd::ControlServer control(
		*control_loop, runtime, directory / "control.sock",
		[&] { main_loop.post([&] { ended = true; }); }, log, state);
	if (keeper)
		keeper->begin(*control_loop, runtime);
	using Events = weftd::ScriptedEvents;
	std::optional<Events> events;
	if (!scheduled.empty())
		events.emplace(*control_loop, runtime, std::move(scheduled),
			       [&](Events::End how, const std::string &reason) {
				       const auto stop = [&end, how, reason] {
					       end(how == Events::End::failed, reason);
				       };
				       // In virtual time, this is the thread of the main loop.
				       if (time)
					       stop();
				       else
					       main_loop.post(stop);
			       });
	spdlog::info("{} hosts, {} switches, {} links; control socket {}", lab.hosts.size(),
		     lab.switches.size(), lab.links.size(), (directory / "control.sock").string());
	weftd::notify_service_manager("READY=1");
	while (!ended)
		reactor.turn(Clock::time_point::max());
	weftd::notify_service_manager("STOPPING=1");
	if (keeper)
		keeper->end();
	scheduler.reset(); // members are not notified of the following destruction
	return status;
}

} // namespace

int main(int argc, char **argv)
{
	const Options options = parse(argc, argv);
	const auto log =
		weftd::set_up_log(options.log_form, spdlog::level::from_str(options.log_level));
	try {
		return run(options, log);
	} catch (const std::exception &error) {
		std::cerr << "weftd: " << error.what() << '\n';
		return 1;
	}
}
