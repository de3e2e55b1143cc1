// SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
// Contains the main function of weft, the command-line program that controls a running weftd, and
// starts labs and the programs in their guests. See weft(1).
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/runtime_directory.hpp"
#include "base/usage.hpp"
#include "weft/attach_command.hpp"
#include "weft/capture.hpp"
#include "weft/command_line.hpp"
#include "weft/control_client.hpp"
#include "weft/lab_command.hpp"
#include "weft/render.hpp"
#include "weft/signals.hpp"
#include "weft/top.hpp"

namespace
{

using namespace weft;
using cli::ControlClient;
using nlohmann::json;

struct Options {
	std::filesystem::path socket_directory = default_socket_directory();
	bool as_json = false;
};

void print(const Options &options, const json &result, const std::string &text)
{
	// The output is ASCII with JSON's escapes, so that it contains no control sequences of
	// terminals.
	std::cout << (options.as_json ? result.dump(2, ' ', true) + '\n' : text);
}

[[noreturn]] void fail_to_write(const std::string &file)
{
	throw std::runtime_error(
		fmt::format("cannot write {}: {}", file, std::generic_category().message(errno)));
}

void write_file(const std::string &file, const std::string &text)
{
	if (file == "-") {
		std::cout << text;
		return;
	}
	std::ofstream stream(file);
	if (!(stream << text) || !stream.flush())
		fail_to_write(file);
}

// Opens standard streams that are closed. Otherwise, the next file or socket that is opened would
// become a standard stream.
void open_standard_streams()
{
	for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
		if (::fcntl(number, F_GETFD) < 0)
			(void)::open("/dev/null", O_RDWR);
}

// Throws an exception if a part of the output cannot be written, for example because a disk is
// full.
void flush_output()
{
	if (!std::cout.flush() || std::ferror(stdout))
		fail_to_write("standard output");
}

void add_fabric(CLI::App &app, const Options &options)
{
	auto *fabric = app.add_subcommand("fabric", "the topology");
	fabric->require_subcommand(1);
	auto *show = fabric->add_subcommand("show", "hosts, switches and links, with their state");
	auto svg = std::make_shared<std::string>();
	show->add_option("--svg", *svg,
			 "write the topology as a picture to this file; - is standard output")
		->type_name("FILE");
	show->callback([&options, svg] {
		const auto result = ControlClient(options.socket_directory).call("fabric.show");
		if (svg->empty())
			print(options, result, cli::fabric_text(result));
		else
			write_file(*svg, cli::fabric_svg(result));
	});
}

void add_link(CLI::App &app, const Options &options)
{
	auto *link = app.add_subcommand("link", "plug, pull and change links");
	link->require_subcommand(1);
	link->footer("LINK is a link (node1/1-switch1/1), a port (node1/1), or a node with one "
		     "link (node1).");
	for (const std::string state : {"up", "down"}) {
		auto *command = link->add_subcommand(state, state == "up" ? "plug the cable in"
									  : "pull the cable");
		auto name = std::make_shared<std::string>();
		command->add_option("LINK", *name, "the link")->required();
		command->callback([&options, name, state] {
			const auto result = ControlClient(options.socket_directory)
						    .call("link." + state, {{"link", *name}});
			print(options, result, cli::link_text(result));
		});
	}

	auto *set = link->add_subcommand("set", "change a link's settings");
	auto name = std::make_shared<std::string>();
	auto settings = std::make_shared<std::vector<std::string>>();
	set->add_option("LINK", *name, "the link")->required();
	set->add_option("SETTINGS", *settings, "one or more SETTING=VALUE")->required();
	set->footer(
		"Settings: width (1x, 4x, 8x, 12x), speed (SDR, DDR, QDR, FDR, EDR), mtu,\n"
		"state (up, down), training, delay and jitter (as in 20us, 1ms), loss, duplication,\n"
		"reordering, corruption, silent_corruption (0 to 1, or as in 2%). Of messages of the\n"
		"CM: cm_loss, cm_duplication, cm_corruption, cm_lateness (0 to 1), cm_delay (as in 1s).\n"
		"Example: weft link set node1 delay=50us loss=1%");
	set->callback([&options, name, settings] {
		json values = json::object();
		for (const auto &setting : *settings) {
			const auto equals = setting.find('=');
			if (equals == std::string::npos)
				throw cli::UsageError(fmt::format(
					"weft link set: '{}' is not SETTING=VALUE\nTry 'weft link "
					"set --help'.",
					printable(setting)));
			values[setting.substr(0, equals)] = setting.substr(equals + 1);
		}
		const auto result =
			ControlClient(options.socket_directory)
				.call("link.set", {{"link", *name}, {"settings", values}});
		print(options, result, cli::link_text(result));
	});
}

void add_counters(CLI::App &app, const Options &options)
{
	auto *counters = app.add_subcommand("counters", "counters of ports");
	auto port = std::make_shared<std::string>();
	auto all = std::make_shared<bool>(false);
	auto cards = std::make_shared<bool>(false);
	auto *only = counters->add_option(
		"PORT", *port,
		"only this port (node1/1), the ports of this node (node1), or both ends of this "
		"link (node1/1-switch1/1)");
	counters->add_flag("--all", *all, "include zeros");
	counters->add_flag("--cards", *cards, "counters of cards instead")->excludes(only);
	counters->callback([&options, port, all, cards] {
		json arguments = json::object();
		if (!port->empty())
			arguments["port"] = *port;
		const auto result =
			ControlClient(options.socket_directory)
				.call(*cards ? "counters.cards" : "counters", arguments);
		print(options, result, cli::counters_text(result, *all));
	});
}

void add_card(CLI::App &app, const Options &options)
{
	auto *card = app.add_subcommand("card", "inject faults into a card, to test its driver");
	card->require_subcommand(1);
	auto host = std::make_shared<std::string>();
	auto fault = std::make_shared<std::string>();
	auto count = std::make_shared<std::uint32_t>(1);
	auto seed = std::make_shared<std::uint64_t>(1);
	auto one_in = std::make_shared<std::uint32_t>(1000);

	auto *once = card->add_subcommand("fault", "make the next operations of a kind fail");
	once->add_option("HOST", *host, "the host of the card")->required();
	once->add_option("FAULT", *fault, "the kind of fault; weft(1) lists them")->required();
	once->add_option("--count", *count, "number of operations")
		->type_name("N")
		->check(usage::integer(0, UINT32_MAX))
		->capture_default_str();
	once->callback([&options, host, fault, count] {
		const auto result =
			ControlClient(options.socket_directory)
				.call("card.fault",
				      {{"host", *host}, {"fault", *fault}, {"count", *count}});
		print(options, result, cli::fault_text(*fault, *count, result));
	});

	auto *random = card->add_subcommand("random-faults",
					    "make random operations fail, chosen by a seed");
	random->add_option("HOST", *host, "the host of the card")->required();
	random->add_option("--seed", *seed, "seed of the random choices")
		->type_name("S")
		->check(usage::integer(0, UINT64_MAX))
		->capture_default_str();
	random->add_option("--one-in", *one_in,
			   "one in this number of operations fails; 0 turns this off")
		->type_name("N")
		->check(usage::integer(0, UINT32_MAX))
		->capture_default_str();
	random->callback([&options, host, seed, one_in] {
		const auto result =
			ControlClient(options.socket_directory)
				.call("card.random_faults",
				      {{"host", *host}, {"seed", *seed}, {"one_in", *one_in}});
		print(options, result, cli::faults_text(result));
	});
}

void add_capture(CLI::App &app, const Options &options)
{
	auto *command = app.add_subcommand(
		"capture", "record the packets of links in a pcapng file, which Wireshark reads");
	auto link = std::make_shared<std::string>();
	auto file = std::make_shared<std::string>();
	auto seconds = std::make_shared<double>(0);
	command->add_option("LINK", *link, "a link, as for `weft link`, or all")->required();
	command->add_option("-w,--write", *file, "the file; - is standard output")
		->type_name("FILE")
		->required();
	command->add_option("--seconds", *seconds, "end after this time")
		->type_name("N")
		->check(usage::number(0.001, 1e6));
	command->callback([&options, link, file, seconds] {
		cli::capture(options.socket_directory, *link, *file, *seconds);
	});
}

void add_sm(CLI::App &app, const Options &options)
{
	auto *sm = app.add_subcommand("sm", "the lab's subnet manager");
	sm->require_subcommand(1);
	const struct {
		std::string name, description;
		std::string (*text)(const json &);
	} commands[] = {
		{"sweep", "sweep the whole subnet again", cli::subnet_manager_text},
		{"renumber", "assign other LIDs to all ports, as a new manager may do",
		 cli::subnet_manager_text},
		{"enable", "make it manage the subnet", cli::subnet_manager_setting_text},
		{"disable", "leave the subnet to another manager, such as OpenSM in a guest",
		 cli::subnet_manager_setting_text},
	};
	for (const auto &command : commands)
		sm->add_subcommand(command.name, command.description)
			->callback([&options, call = "sm." + command.name, text = command.text] {
				const auto result =
					ControlClient(options.socket_directory).call(call);
				print(options, result, text(result));
			});

	auto *corrupt_replies =
		sm->add_subcommand("corrupt-replies", "make the manager send invalid responses");
	auto seed = std::make_shared<std::uint64_t>(1);
	auto one_in = std::make_shared<std::uint32_t>(1);
	corrupt_replies->add_option("--seed", *seed, "seed of the random choices")
		->type_name("S")
		->check(usage::integer(0, UINT64_MAX))
		->capture_default_str();
	corrupt_replies
		->add_option("--one-in", *one_in,
			     "one in this number of replies is corrupt; 0 turns this off")
		->type_name("N")
		->check(usage::integer(0, UINT32_MAX))
		->capture_default_str();
	corrupt_replies->callback([&options, seed, one_in] {
		const auto result =
			ControlClient(options.socket_directory)
				.call("sm.corrupt-replies", {{"seed", *seed}, {"one_in", *one_in}});
		print(options, result, cli::corrupted_replies_text(result));
	});
}

void add_top(CLI::App &app, const Options &options)
{
	auto *top = app.add_subcommand("top", "links with their rates and errors, live");
	auto interval = std::make_shared<double>(1);
	auto count = std::make_shared<unsigned>(0);
	auto order = std::make_shared<cli::TopOrder>(cli::TopOrder::rate);
	top->add_option("--interval", *interval, "seconds between two samples")
		->type_name("S")
		->check(usage::number(0.1, 3600))
		->capture_default_str();
	top->add_option("--count", *count, "exit after this number of samples")
		->type_name("N")
		->check(usage::integer(1, 1000000));
	top->add_option_function<std::string>(
		   "--sort",
		   [order](const std::string &name) { *order = *cli::top_order_of(name.front()); },
		   "the sort order (default: rate)")
		->check(usage::one_of({"rate", "errors", "name"}));
	top->callback([&options, interval, count, order] {
		cli::run_top(options.socket_directory, *interval, *count, *order);
	});
}

void add_log(CLI::App &app, const Options &options)
{
	auto *log = app.add_subcommand("log", "the latest lines of weftd's log");
	auto part = std::make_shared<std::string>();
	log->add_option(
		"PART", *part,
		"only those of sm, link, trunk, switch, fabric, control, weftd, or a host's card");
	log->callback([&options, part] {
		json arguments = json::object();
		if (!part->empty())
			arguments["part"] = *part;
		const auto result = ControlClient(options.socket_directory).call("log", arguments);
		print(options, result, cli::log_text(result));
	});
}

void add_shutdown(CLI::App &app, const Options &options)
{
	app.add_subcommand("shutdown", "stop weftd; guests lose their cards")->callback([&options] {
		ControlClient(options.socket_directory).call("shutdown");
	});
}

} // namespace

int main(int argc, char **argv)
{
	open_standard_streams();
	CLI::App app("Runs labs, and shows and changes a virtual InfiniBand fabric.", "weft");
	app.formatter(usage::formatter());
	Options options;
	app.add_option("--socket-dir", options.socket_directory, "the directory of weftd's sockets")
		->type_name("DIR")
		->capture_default_str();
	app.add_flag("--json", options.as_json, "print results as JSON");
	app.set_version_flag("--version", "weft " WEFT_VERSION);
	app.require_subcommand(1);
	// Options of weft itself may follow a command's name.
	app.fallthrough();
	app.footer("`weft COMMAND --help` and weft(1) describe each command.");
	add_fabric(app, options);
	add_link(app, options);
	add_counters(app, options);
	add_card(app, options);
	add_capture(app, options);
	add_sm(app, options);
	add_top(app, options);
	add_log(app, options);
	add_shutdown(app, options);
	std::vector<cli::GuestCommand> guest_commands;
	cli::add_lab(app, options.socket_directory, options.as_json, guest_commands);
	cli::add_topology(app, options.socket_directory);
	cli::add_run(app, options.socket_directory, guest_commands);
	cli::add_hunt(app, options.socket_directory);
	cli::add_attach(app, options.socket_directory, guest_commands);
	cli::add_web(app, options.socket_directory);
	try {
		auto words = cli::own_words(app, guest_commands,
					    std::vector<std::string>(argv + 1, argv + argc));
		std::ranges::reverse(words); // in the order that CLI11 expects
		app.parse(std::move(words));
		flush_output();
	} catch (const cli::UsageError &error) {
		std::cerr << error.what() << '\n';
		return usage::kStatus;
	} catch (const CLI::ParseError &error) {
		return usage::report(app, error);
	} catch (const std::exception &error) {
		std::cerr << "weft: " << printable_lines(error.what()) << '\n';
		return 1;
	}
	return 0;
}
